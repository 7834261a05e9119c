"""Statements that show something."""
