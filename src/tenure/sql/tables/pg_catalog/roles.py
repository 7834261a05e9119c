"""pg_roles, pg_authid, pg_user, pg_shadow, pg_group, pg_auth_members: who there is.

Verifiers of passwords are in none of them, not for superusers either: pg_authid and pg_shadow, which have
them in PostgreSQL, are restricted to superusers and show NULL.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator
from zlib import crc32

from tenure.catalog.descriptors.role_records import Role
from tenure.expr.types.datatype import Datum
from tenure.sql.names.object_numbers import HASHED_FROM
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

ROLES, AUTHID, USERS, SHADOW = (shape(name) for name in ("pg_roles", "pg_authid", "pg_user", "pg_shadow"))
GROUPS, MEMBERS = shape("pg_group"), shape("pg_auth_members")
HIDDEN_PASSWORD = "********"


def definitions() -> Iterator[VirtualDefinition]:
    yield ROLES.defined(_roles)
    yield AUTHID.defined(_authids, is_restricted=True)
    yield USERS.defined(_users)
    yield SHADOW.defined(_shadows, is_restricted=True)
    yield GROUPS.defined(_groups)
    yield MEMBERS.defined(_members)


def _of(reader: TableReader) -> list[Role]:
    return sorted(CatalogReader(reader).roles, key=lambda each: each.id)


def _attributes(role: Role) -> dict[str, Datum]:
    return {
        "oid": role.id,
        "rolname": role.name,
        "rolsuper": role.is_superuser,
        "rolinherit": role.inherits,
        "rolcreaterole": role.can_create_roles or role.is_superuser,
        "rolcreatedb": role.can_create_databases or role.is_superuser,
        "rolcanlogin": role.can_login,
        "rolreplication": False,
        "rolbypassrls": role.is_superuser,
        "rolconnlimit": -1,
    }


def _roles(reader: TableReader) -> Rows:
    return (ROLES.row(**_attributes(each), rolpassword=HIDDEN_PASSWORD) for each in _of(reader))


def _authids(reader: TableReader) -> Rows:
    return (AUTHID.row(**_attributes(each)) for each in _of(reader))


def _login(role: Role) -> dict[str, Datum]:
    return {
        "usename": role.name,
        "usesysid": role.id,
        "usecreatedb": role.can_create_databases or role.is_superuser,
        "usesuper": role.is_superuser,
        "userepl": False,
        "usebypassrls": role.is_superuser,
    }


def _users(reader: TableReader) -> Rows:
    return (USERS.row(**_login(each), passwd=HIDDEN_PASSWORD) for each in _of(reader) if each.can_login)


def _shadows(reader: TableReader) -> Rows:
    return (SHADOW.row(**_login(each)) for each in _of(reader) if each.can_login)


def _groups(reader: TableReader) -> Rows:
    graph = CatalogReader(reader).roles
    for role in _of(reader):
        if not role.can_login:
            members = [graph.role(each.member) for each in graph.memberships if each.role == role.name]
            ids = tuple(sorted(each.id for each in members if each is not None))
            yield GROUPS.row(groname=role.name, grosysid=role.id, grolist=ids)


def _members(reader: TableReader) -> Rows:
    catalog = CatalogReader(reader)
    for each in catalog.roles.memberships:
        yield MEMBERS.row(
            oid=HASHED_FROM + crc32(f"{each.role}/{each.member}/{each.grantor}".encode()) // 2,
            roleid=catalog.role_oid(each.role),
            member=catalog.role_oid(each.member),
            grantor=catalog.role_oid(each.grantor),
            admin_option=each.has_admin,
            inherit_option=each.inherits,
            set_option=each.can_set,
        )
