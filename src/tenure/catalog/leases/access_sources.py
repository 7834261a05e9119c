"""Roles and privileges as a statement sees them: of the newest lease, with its transaction's own changes.

    newest lease           `CatalogView`, in memory
    no lease of all        `StoredAccess`: the older scheme leases descriptors one by one, so this reads
    changed by the draft   `DraftAccess` over either: rights that were granted or revoked in the transaction

Walk: `sql.session.session_rights` calls `access_source` for each check that is not answered already.
"""

from tenure.catalog.accounts.rights import AccessSource
from tenure.catalog.accounts.role_graph import RoleGraph
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.role_records import (
    LeasedRecord,
    Membership,
    ObjectPrivileges,
    RecordKey,
    Role,
    key_of,
)
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction


def access_source(
    store: Store, catalog: Catalog, newest: CatalogView | None, draft: Draft | None
) -> AccessSource:
    source = StoredAccess(catalog, store.snapshot()) if newest is None else newest
    return DraftAccess(source, draft) if draft else source


class StoredAccess:
    def __init__(self, catalog: Catalog, snapshot: Snapshot | Transaction) -> None:
        self._catalog = catalog
        self._snapshot = snapshot
        self._graph: RoleGraph | None = None

    @property
    def roles(self) -> RoleGraph:
        if self._graph is None:
            records = self._catalog.roles
            self._graph = RoleGraph(records.roles(self._snapshot), records.memberships(self._snapshot))
        return self._graph

    def privileges(self, object: int, column: int) -> ObjectPrivileges | None:
        return self._catalog.roles.privileges(self._snapshot, object, column)

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self._catalog.get(self._snapshot, id)


class DraftAccess:
    def __init__(self, below: AccessSource, draft: Draft) -> None:
        self._below = below
        self._draft = draft
        self._graph: RoleGraph | None = None

    @property
    def roles(self) -> RoleGraph:
        if self._graph is None:
            self._graph = self._merged()
        return self._graph

    def _merged(self) -> RoleGraph:
        below = self._below.roles
        changes = {key: each.record for key, each in self._draft.records.items() if key[0] != "privileges"}
        if not changes:
            return below
        roles = {key_of(each): each for each in below}
        memberships = {key_of(each): each for each in below.memberships}
        found: dict[RecordKey, LeasedRecord | None] = {**roles, **memberships, **changes}
        return RoleGraph(
            (each for each in found.values() if isinstance(each, Role)),
            (each for each in found.values() if isinstance(each, Membership)),
        )

    def privileges(self, object: int, column: int) -> ObjectPrivileges | None:
        change = self._draft.records.get(("privileges", object, column))
        if change is None:
            return self._below.privileges(object, column)
        assert change.record is None or isinstance(change.record, ObjectPrivileges)
        return change.record

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self._draft.declared.get(id) or self._below.descriptor(id)
