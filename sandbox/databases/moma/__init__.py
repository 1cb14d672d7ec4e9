"""A museum's artists and works, with what people typed in a hundred years."""
