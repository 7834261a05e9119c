"""What a dump may do, and how it comes to do it.

Walk: `sql.statements.jobs.import_dump` -> `rules` for each item of the file, then `making`.
"""
