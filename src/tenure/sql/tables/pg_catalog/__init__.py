"""PostgreSQL's catalogs, made of descriptors, roles and privileges: what its clients ask about the schema."""
