"""ALTER TABLE ... RESET TO: a table's rows become what they were at a time."""
