"""GRANT and REVOKE in the world of schema changes, and statements that need what was granted.

    grant, revoke        a privilege of a table, for one of two roles, alone or with a rename
    write by right       asks for INSERT by the newest lease, as each execution does, and writes if it may

Walk: `schema_client.SHAPES` has them under their names; `right_predicates` judges what they have recorded.
"""

from functools import partial
from typing import TYPE_CHECKING

from tenure.base.errors import InsufficientPrivilege
from tenure.catalog.accounts.privileges import INSERT, SELECT, granted, initial, revoked
from tenure.catalog.accounts.rights import Need, check_needs
from tenure.catalog.descriptors.definitions import ROOT, Table
from tenure.catalog.descriptors.role_records import (
    WHOLE_OBJECT,
    ObjectPrivileges,
    RecordKey,
    Role,
    key_of,
)
from tenure.catalog.leases.access_sources import access_source
from tenure.catalog.leases.catalog_use import CatalogUse
from tests.simulation.schema_changes import rename
from tests.simulation.schema_trace import Checked, Declared, Right, TracingLeases

if TYPE_CHECKING:
    from tests.simulation.schema_client import SchemaClient

ROLES = ("ann", "bob")
FIRST_ROLE = 10_000
"""Ids of roles lie far above those of descriptors."""
PRIVILEGES = (INSERT, SELECT, INSERT | SELECT)


def change_rights(is_grant: bool, client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    table = client.some_table(use)
    if table is None:
        return False
    role, bits = ROLES[client.pick(len(ROLES))], PRIVILEGES[client.pick(len(PRIVILEGES))]
    _require_role(client, use, role)
    records, key = client.process.catalog.roles, _key(table.id)
    stored = records.get(use.txn, key)
    assert stored is None or isinstance(stored, ObjectPrivileges)
    before = initial("table") if stored is None else stored.entries
    if is_grant:
        entries = granted(before, grantee=role, grantor=ROOT, bits=bits, with_option=False, owner=table.owner)
    else:
        entries = revoked(
            before,
            grantee=role,
            grantor=ROOT,
            bits=bits,
            option_only=False,
            cascade=False,
            owner=table.owner,
        )
    client.pause()
    use.draft.set_record(key, ObjectPrivileges(table.id, WHOLE_OBJECT, entries), former=stored)
    declared.right = Right(table.id, role, bits, is_grant)
    if client.maybe(0.2):
        rename(client, use, table, declared)
    return True


def _require_role(client: "SchemaClient", use: CatalogUse, name: str) -> None:
    """The first who needs a role creates it."""
    if client.process.catalog.roles.role(use.txn, name) is None:
        role = Role(name, FIRST_ROLE + ROLES.index(name))
        use.draft.set_record(key_of(role), role, former=None)


def _key(table: int) -> RecordKey:
    return "privileges", table, WHOLE_OBJECT


def write_by_right(client: "SchemaClient") -> None:
    """A statement of a role, at once or late in its transaction."""

    def run(use: CatalogUse) -> None:
        table = client.some_table(use)
        if table is None:
            return
        if client.maybe(0.5):
            client.think()
        role = ROLES[client.pick(len(ROLES))]
        if _may(client, use, table, role):
            client.write(use, table)

    client.using(run)


def _may(client: "SchemaClient", use: CatalogUse, table: Table, role: str) -> bool:
    leases = client.process.leases
    assert isinstance(leases, TracingLeases)
    step, newest = client.schema_trace.tick(), leases.newest
    source = access_source(client.store, client.process.catalog, newest, use.draft)
    try:
        check_needs(source, role, [Need(table.id, INSERT)])
        is_allowed = True
    except InsufficientPrivilege:
        is_allowed = False
    client.trace.seen["statement by right" if is_allowed else "statement without a right"] += 1
    checked = Checked(step, table.id, role, INSERT, is_allowed, newest.at)
    client.record(use).checked.append(checked)
    return is_allowed


CHANGES = {"grant": partial(change_rights, True), "revoke": partial(change_rights, False)}
SHAPES = {"write by right": write_by_right}
WEIGHTS = {"grant": 3.0, "revoke": 2.0, "write by right": 6.0}
