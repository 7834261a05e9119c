"""What only a cluster that is not finalized needs: expiring leases, jobs held by instances."""
