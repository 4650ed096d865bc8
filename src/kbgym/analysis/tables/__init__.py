"""The tables of the report, by what they are about."""
