"""Jobs: as records, claimed by a session, run exactly once at a time."""
