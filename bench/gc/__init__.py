"""Garbage collection and protections: beside PostgreSQL, and beside ours without them."""
