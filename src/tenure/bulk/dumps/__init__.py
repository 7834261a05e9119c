"""Dumps: SQL files of `pg_dump`, scanned without being loaded.

Walk: `sql.statements.jobs.import_dump` calls `scan.items`.
"""
