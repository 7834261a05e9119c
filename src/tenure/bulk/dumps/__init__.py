"""Dumps: files that `pg_dump` writes as SQL, looked through without being loaded.

Walk: `sql.statements.jobs.import_dump` calls `scan.items`.
"""
