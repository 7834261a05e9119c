"""Tables: rows and index entries as keys and values, writing and reading them, filling new elements."""
