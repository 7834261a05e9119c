"""The store: keys, serializable transactions, history, watches, marks and typed records."""
