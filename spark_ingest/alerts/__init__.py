"""Alerts: what needs a person, and who hears of it."""
