"""Retention: how long history is kept, who keeps it longer, and the sweeps that remove the rest."""
