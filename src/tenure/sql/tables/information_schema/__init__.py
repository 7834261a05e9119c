"""The catalog in the words of the SQL standard: the tables, columns and constraints that a user may see."""
