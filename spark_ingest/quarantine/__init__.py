"""Quarantined records in people's hands: chosen, shown, replayed, discarded."""
