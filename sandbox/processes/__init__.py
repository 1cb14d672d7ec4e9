"""Programs as processes: started, watched, ended; their logs and locks."""
