"""Bulk work on tables as jobs, made of `scan` and `merge`."""
