"""What an increment of all facts costs on long histories."""
