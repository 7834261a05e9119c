"""SQLAlchemy's own compliance suite for dialects, run against PostgreSQL and against a node."""
