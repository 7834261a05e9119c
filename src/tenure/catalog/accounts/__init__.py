"""Users, their passwords, and the cluster's own secrets."""
