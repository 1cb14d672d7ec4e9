"""What a new stream or captured table takes in dbt, written as a first draft."""
