"""The sessions that doors and jobs open."""
