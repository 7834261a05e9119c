"""Engines, which keep the bytes of the store: one contract, SQLite and PostgreSQL."""
