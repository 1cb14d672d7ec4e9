"""Layouts of the pages; a page without one uses the generic layout."""
