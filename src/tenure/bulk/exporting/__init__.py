"""EXPORT: rows become files that users get."""
