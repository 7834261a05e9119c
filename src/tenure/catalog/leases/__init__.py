"""Leases: the right of a node to use cached schema, and how others wait for it."""
