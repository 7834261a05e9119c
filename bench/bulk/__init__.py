"""Bulk work beside PostgreSQL's and DuckDB's: import, and how soon a worker is ready."""
