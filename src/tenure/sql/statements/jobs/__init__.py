"""Statements that are done by a job, and those that steer jobs."""
