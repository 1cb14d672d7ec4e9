"""Child processes: start, monitor and stop them; their logs and lock files."""
