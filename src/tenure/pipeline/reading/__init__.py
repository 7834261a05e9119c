"""Files that users give, as typed batches of rows: CSV, NDJSON and Parquet."""
