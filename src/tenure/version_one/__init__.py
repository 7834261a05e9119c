"""Code for clusters that are not finalized: expiring leases, jobs held by instances."""
