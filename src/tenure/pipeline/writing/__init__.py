"""Rows as files for users: CSV, NDJSON and Parquet.

Walk: an export's kernel opens `files.OutputFiles` and passes it `cells`, batch by batch. A process that does
not need Arrow may import only `formats`.
"""
