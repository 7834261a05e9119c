"""Online schema change: stages, their publication, the work between them, and the job that walks."""
