"""How long a database's commit takes to bronze and to the current state, and how many a second."""
