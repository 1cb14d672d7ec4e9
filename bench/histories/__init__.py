"""What an increment of a captured table's history costs."""
