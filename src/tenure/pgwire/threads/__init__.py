"""Which statements run at once, in whose turn, and in which threads."""
