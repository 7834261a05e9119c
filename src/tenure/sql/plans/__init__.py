"""Plans: what a query means, as data."""
