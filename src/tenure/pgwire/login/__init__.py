"""From a new connection to an open session: TLS, authentication, eviction of slow logins."""
