"""Bulk work beside PostgreSQL: files out of tables."""
