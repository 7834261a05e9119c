"""CREATE TABLE and ALTER TABLE: columns, constraints, what is taken over from another table."""
