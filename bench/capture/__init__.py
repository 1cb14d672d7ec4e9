"""How long a database's commit takes to bronze, to a live view and to the current state."""
