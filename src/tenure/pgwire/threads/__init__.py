"""Which statements run at once, in which order, and in which threads."""
