"""What clients and tools ask of the catalog, and migrations: beside PostgreSQL."""
