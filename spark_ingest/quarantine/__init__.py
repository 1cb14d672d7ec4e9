"""Quarantined records: select, show, replay and discard them."""
