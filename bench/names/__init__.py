"""Names, schemas and privileges: what resolving, checking, creating and granting cost."""
