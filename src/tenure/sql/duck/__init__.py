"""DuckDB: parts of plans that it answers alike, and faster."""
