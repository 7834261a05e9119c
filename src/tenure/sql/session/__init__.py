"""A client's session: its blocks, locks, variables, memory, and the interrupts of its statements."""
