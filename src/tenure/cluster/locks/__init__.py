"""Locks between transactions of all nodes: of rows, and those that applications ask for."""
