"""The rows executor: plans run by generators over tuples."""
