"""SQL beside PostgreSQL, and its door beside a bare loop: one module per promise."""
