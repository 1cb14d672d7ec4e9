"""What a stream has committed and where it goes on: lease, branches, snapshots and their log."""
