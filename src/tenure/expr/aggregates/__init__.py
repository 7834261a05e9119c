"""Aggregates and window functions: the table of all of them, and a module for each family."""
