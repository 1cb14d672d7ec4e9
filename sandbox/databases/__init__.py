"""The databases whose changes the sandbox captures: what stands in them, and what changes.

Each has a folder here, the three of the ticket shop one together: the SQL of its tables, the rows
that it begins with, and the random changes that follow. All chance comes from a seed, so that a
test can know each state that a database was in.
"""
