"""The door for PostgreSQL clients: the wire protocol, free of I/O at its core, and its server."""
