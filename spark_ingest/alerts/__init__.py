"""Alerts: find problems that need action, and post them to a webhook."""
