"""The access planner: how the tables of a plan are read."""
