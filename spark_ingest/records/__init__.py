"""Bytes to rows: each record decoded, validated and made a row of bronze."""
