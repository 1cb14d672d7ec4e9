"""Sales of the Pagila DVD rental shops: what is sold, to whom, and where the buyer lives."""
