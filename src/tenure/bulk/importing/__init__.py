"""IMPORT INTO: users' files become rows of tables, every constraint checked, in one commit.

Walk: `sql.statements.jobs.importing` makes the job; `cluster.jobs.runner` runs `importing.job`.
"""
