"""Locks between transactions of all nodes: of rows, and advisory locks."""
