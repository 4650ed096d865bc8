"""A store in PostgreSQL, shared by many processes."""
