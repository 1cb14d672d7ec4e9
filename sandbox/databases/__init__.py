"""What the captured databases hold: their tables, seeded rows, random changes."""
