"""The leases of version 1, one per descriptor, and both schemes at once while a cluster is upgraded."""
