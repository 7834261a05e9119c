"""The engine for several machines: a PostgreSQL server."""
