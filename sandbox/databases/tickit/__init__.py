"""TICKIT, a shop of tickets: one business whose rows lie in three databases.

``ems`` has its categories, venues and events, ``crm`` its users, ``ecomm`` its days, listings and
sales. None of the three sees the others: ``shop`` is what they agree on.
"""
