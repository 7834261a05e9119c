"""Descriptors: what they are, what must be true of them, how they move, and how they are stored."""
