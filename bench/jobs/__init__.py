"""Claimed jobs beside procrastinate, both on one PostgreSQL."""
