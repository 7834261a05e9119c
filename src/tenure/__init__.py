"""Tenure: a SQL system whose schema may change while everything keeps running."""

__version__ = "0.1.0"
