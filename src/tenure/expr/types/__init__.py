"""The types: their values, how they are read and written, and which casts lead from one to another."""
