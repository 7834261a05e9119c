"""Statements about roles, what they own and what they may."""
