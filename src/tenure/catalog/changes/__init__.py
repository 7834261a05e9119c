"""Changes of the catalog: declared in a transaction's draft, then published."""
