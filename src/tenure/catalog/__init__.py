"""The catalog: descriptors, their names, and the leases under which nodes cache them."""
