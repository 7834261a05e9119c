"""Every function of the surface with inputs at its limits: none runs on when it is told to stop."""
