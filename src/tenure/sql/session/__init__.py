"""A client's session: its blocks, portals, variables, kept plans, and what ends a statement early."""
