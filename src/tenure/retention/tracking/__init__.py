"""Each node's copy of the protections."""
