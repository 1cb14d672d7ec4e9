"""The databases with change data capture: their schemas, initial rows and random changes.

Each has a folder here (the three of the ticket shop share one) with the SQL of its tables, the
initial rows and the random changes. All randomness comes from a seed, so that tests know every
state of a database.
"""
