"""The catalogs as real clients read them, beside a PostgreSQL that has the same objects."""
