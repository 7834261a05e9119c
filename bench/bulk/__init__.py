"""Measurements of tables in the lake."""
