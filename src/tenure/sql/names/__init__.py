"""Name resolution for statements: now, at an earlier time, in a view, for sequences."""
