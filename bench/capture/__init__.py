"""How long a database's commit takes to bronze and to the held table, and how many a second."""
