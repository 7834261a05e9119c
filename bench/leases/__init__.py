"""Leases: what a large catalog costs to hold, to look up in, and to change."""
