"""Changefeeds: how soon a change is emitted, how many, and what more feeds and tables cost."""
