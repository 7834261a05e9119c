"""table_privileges, role_table_grants, enabled_roles, applicable_roles: who may do what.

Walk: `sql.tables.information_schema.relations` collects `definitions`.
"""

from collections.abc import Iterator
from functools import partial

from tenure.catalog.accounts.privileges import WORDS, initial, kind_of
from tenure.catalog.descriptors.definitions import Table, View
from tenure.catalog.descriptors.role_records import OWNER, PUBLIC_ROLE, AclEntry
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.information_schema.shapes import information_shape
from tenure.sql.tables.information_schema.visible_objects import VisibleCatalog, yes_or_no
from tenure.sql.tables.pg_catalog.shapes import Shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

TABLE_PRIVILEGES, ROLE_GRANTS = information_shape("table_privileges"), information_shape("role_table_grants")
ENABLED_ROLES, APPLICABLE_ROLES = information_shape("enabled_roles"), information_shape("applicable_roles")
STANDARD = ("INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
"""Those that the standard and PostgreSQL's views know."""


def definitions() -> Iterator[VirtualDefinition]:
    yield TABLE_PRIVILEGES.defined(partial(_grants, TABLE_PRIVILEGES))
    yield ROLE_GRANTS.defined(partial(_grants, ROLE_GRANTS))
    yield ENABLED_ROLES.defined(_enabled_roles)
    yield APPLICABLE_ROLES.defined(_applicable_roles)


def _grants(shape: Shape, reader: TableReader) -> Rows:
    """Those given by or to a role of the user; to everybody only in table_privileges."""
    catalog = VisibleCatalog(reader)
    tables: list[Table | View] = [*catalog.of(Table), *catalog.of(View)]
    for table in tables:
        for entry in _entries(catalog, table):
            names = {OWNER: table.owner, PUBLIC_ROLE: "PUBLIC"}
            grantor, grantee = (names.get(each, each) for each in (entry.grantor, entry.grantee))
            is_public = entry.grantee == PUBLIC_ROLE and shape is TABLE_PRIVILEGES
            if not (is_public or any(map(catalog.rights.has_rights_of, (grantor, grantee)))):
                continue
            for word in STANDARD:
                if entry.privileges & WORDS[word]:
                    yield shape.row(
                        grantor=grantor,
                        grantee=grantee,
                        table_catalog=catalog.catalog_name,
                        table_schema=catalog.schema_name(table),
                        table_name=table.name,
                        privilege_type=word,
                        is_grantable=yes_or_no(bool(entry.grantable & WORDS[word]) or grantee == table.owner),
                        with_hierarchy=yes_or_no(word == "SELECT"),
                    )


def _entries(catalog: VisibleCatalog, table: Table | View) -> tuple[AclEntry, ...]:
    stored = catalog.privileges(table.id)
    return initial(kind_of(table)) if stored is None else stored.entries


def _enabled_roles(reader: TableReader) -> Rows:
    rights = VisibleCatalog(reader).rights
    for role in rights.graph:
        if rights.has_rights_of(role.name):
            yield ENABLED_ROLES.row(role_name=role.name)


def _applicable_roles(reader: TableReader) -> Rows:
    rights = VisibleCatalog(reader).rights
    for each in rights.graph.memberships:
        if rights.has_rights_of(each.member):
            yield APPLICABLE_ROLES.row(
                grantee=each.member, role_name=each.role, is_grantable=yes_or_no(each.has_admin)
            )
