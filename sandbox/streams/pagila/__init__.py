"""Sales of the Pagila DVD rental shops: what is sold, to whom, and where the buyer lives."""

KEY_FIELDS = {"sales": "customer_id"}
