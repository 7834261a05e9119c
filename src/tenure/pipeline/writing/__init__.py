"""Rows as files that users get: CSV, NDJSON and Parquet.

Walk: an export's kernel opens `files.OutputFiles` and gives it `cells`, batch by batch. Only `formats` may be
imported by a process that has no use for Arrow.
"""
