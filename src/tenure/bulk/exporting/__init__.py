"""EXPORT: rows become files for users."""
