"""Node sessions beside etcd's leases."""
