"""Bulk work beside PostgreSQL and DuckDB: import, export, queries of a base, and a worker that gets ready."""
