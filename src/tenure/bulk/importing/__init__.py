"""IMPORT INTO: users' files become rows of tables, every constraint checked, in one commit.

Walk: `sql.statements.importing` makes the job; `cluster.runner` runs `importing.job`.
"""
