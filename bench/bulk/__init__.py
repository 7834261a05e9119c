"""Bulk work beside PostgreSQL and DuckDB: import, export, queries of a base, workers."""
