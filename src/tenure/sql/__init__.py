"""SQL: parse, bind, plan, execute; one `Session` per client."""
