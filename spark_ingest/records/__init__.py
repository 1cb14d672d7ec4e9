"""Bytes to rows: each record decoded, judged and made a row of bronze."""
