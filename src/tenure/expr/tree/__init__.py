"""Expressions as trees: built, resolved, rewritten, folded, compiled and written as SQL."""
