"""From a new connection to an open session: TLS, who it is, who makes room."""
