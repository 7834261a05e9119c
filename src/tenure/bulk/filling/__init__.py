"""Filling a new index of a large table by a merge in the lake."""
