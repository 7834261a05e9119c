"""What the names in a statement mean: now, at an earlier time, in a view, of a sequence."""
