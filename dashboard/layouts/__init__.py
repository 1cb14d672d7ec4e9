"""What each page shows of its queries, and how; a page without a file here is made generically."""
