"""Statements that define something."""
