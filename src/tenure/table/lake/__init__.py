"""The lake: an index's rows in sorted Parquet files, and the manifest that says which they are."""
