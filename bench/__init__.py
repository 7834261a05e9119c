"""Side-by-side measurements: ours and a peer's in one run, on one machine, as a ratio."""
