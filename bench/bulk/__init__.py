"""Bulk work beside PostgreSQL and DuckDB: files into tables and out of them, and how soon a worker is ready."""
