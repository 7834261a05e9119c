"""Bulk work beside PostgreSQL and DuckDB: import, export, queries of a base, and how soon a worker is ready."""
