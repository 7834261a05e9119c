"""The binder: from parse trees to plans."""
