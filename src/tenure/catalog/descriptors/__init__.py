"""Descriptors: their definitions, validity, steps and storage."""
