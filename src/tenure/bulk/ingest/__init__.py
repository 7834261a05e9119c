"""Rows on their way into tables in bulk: completed, sorted into runs, checked against what they refer to.

Imports, resets and fills of indexes use these parts.
"""
