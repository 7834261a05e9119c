"""Bulk work beside PostgreSQL and DuckDB: files into tables and out of them, queries of a base, and workers."""
