"""How statements are planned, kept, run and committed, over the state of their session."""
