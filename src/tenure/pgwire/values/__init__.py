"""Values and rows as bytes, in PostgreSQL's text and binary formats."""
