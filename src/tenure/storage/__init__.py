"""Engines: what the store keeps its bytes in. One contract, SQLite and PostgreSQL."""
