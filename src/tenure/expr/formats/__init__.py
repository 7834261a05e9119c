"""Values by a pattern: to_char and its inverses; and the escapes of COPY."""
