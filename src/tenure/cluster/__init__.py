"""Nodes as a cluster: their sessions, the jobs they claim, the settings they share."""
