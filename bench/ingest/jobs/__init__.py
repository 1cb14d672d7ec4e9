"""The contestants that are programs of ours: each runs in a process of its own."""
