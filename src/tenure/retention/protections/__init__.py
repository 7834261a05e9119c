"""Protections: records that keep history from being collected."""
