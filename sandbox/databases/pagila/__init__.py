"""Pagila's films and who plays in them, and addresses."""
