"""Bulk work beside PostgreSQL's and DuckDB's: import, export, and how soon a worker is ready."""
