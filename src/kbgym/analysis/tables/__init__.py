"""The tables of the report, grouped by subject."""
