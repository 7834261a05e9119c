"""The store beside bare SQLite and bare PostgreSQL: one module per promise."""
