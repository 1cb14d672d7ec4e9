"""TICKIT's days, listings of tickets and sales of them."""
