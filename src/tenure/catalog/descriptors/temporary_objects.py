"""The temporary tables, views and sequences of one SQL session: descriptors that are in its memory alone.

    CREATE TEMP TABLE ──► the transaction's draft ──► COMMIT: the session's next `TemporaryObjects`
                                                  └─► ROLLBACK: the session keeps the former

They are in a schema of the session, `pg_temp_n`, which no catalog has: so no other session can name them, and
no lease, history or backup has them. Their rows are in the store under their ids, and belong to the node
session under which they were made: they end with it.

What they use of the catalog does not list them, as no other session could find them: `users_of` looks the
other way round, through the few that the session has. Another session's DROP does not wait for them.

Invariant (temporary-own): a temporary object is found through the transactions of its own session alone.

Walk: `sql.session.temporary_tables` keeps the value, `catalog.leases.catalog_use` looks into it, and
`schema_change.temporary_changes` makes the next one; `catalog.changes.table_changes` calls `users_of`.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    EnumType,
    NameKey,
    Schema,
    Table,
    View,
    is_dropped,
    place_of,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft, OnCommit
from tenure.catalog.descriptors.elements import finished
from tenure.catalog.descriptors.used_types import enums_of
from tenure.cluster.sessions.session_records import SessionId


class TemporaryObjects(NamedTuple):
    schema: Schema
    session: SessionId
    """The node session that the rows belong to."""
    by_id: Mapping[int, AnyDescriptor]
    """The objects, and the schema itself."""
    names: Mapping[NameKey, int]
    on_commit: Mapping[int, OnCommit]
    types: Mapping[int, EnumType]
    """The enums of their columns, as they were when one of the objects was last changed."""

    def objects(self) -> list[AnyDescriptor]:
        return [each for each in self.by_id.values() if each.id != self.schema.id]

    def has(self, descriptor: AnyDescriptor) -> bool:
        """Whether it is one of the objects, or becomes one at the commit."""
        return getattr(descriptor, "schema", 0) == self.schema.id

    def shown_types(self) -> dict[int, EnumType]:
        """The enums of their columns as their own, for catalogs: other sessions may have dropped them."""
        place = {"database": self.schema.database, "schema": self.schema.id}
        return {id: replace(each, **place) for id, each in self.types.items()}


def no_objects(schema: Schema, session: SessionId) -> TemporaryObjects:
    return TemporaryObjects(schema, session, {schema.id: schema}, {}, {}, {})


def with_changes(
    former: TemporaryObjects, draft: Draft, find: Callable[[int], AnyDescriptor | None]
) -> TemporaryObjects:
    """The objects after a transaction with these changes, each in its final state and its next version."""
    by_id = dict(former.by_id)
    for id, declared in draft.declared.items():
        if is_dropped(declared):
            by_id.pop(id, None)
        else:
            version = declared.version + (not draft.is_new(id))
            by_id[id] = replace(finished(declared), version=version, draining=())
    names = {place_of(each): id for id, each in by_id.items() if id != former.schema.id}
    on_commit = {id: action for id, action in {**former.on_commit, **draft.on_commit}.items() if id in by_id}
    found = [find(id) or former.types.get(id) for id in {*chain(*map(_types, by_id.values()))}]
    types = {each.id: each for each in found if isinstance(each, EnumType)}
    return former._replace(by_id=by_id, names=names, on_commit=on_commit, types=types)


def users_of(temporary: TemporaryObjects | None, draft: Draft, id: int) -> list[int]:
    """The temporary objects that use a permanent one, after all declared changes."""
    if temporary is None:
        return []
    found = {**temporary.by_id, **draft.declared}
    return [
        user
        for user, each in found.items()
        if temporary.has(each) and not is_dropped(each) and id in _uses(each)
    ]


def _uses(descriptor: AnyDescriptor) -> set[int]:
    match descriptor:
        case View():
            return {each.id for each in descriptor.depends}
        case _:
            return _types(descriptor)


def _types(descriptor: AnyDescriptor) -> set[int]:
    """The enums that it uses."""
    match descriptor:
        case Table():
            return {*enums_of(descriptor)}
        case View():
            return {each.type.enum for each in descriptor.columns if each.type.enum}
        case _:
            return set()


def former_indexes(before: TemporaryObjects, after: TemporaryObjects) -> list[tuple[int, int]]:
    """The (table, index) pairs that a transaction has taken away from tables that stay."""
    return [
        (id, index.id)
        for id, table in before.by_id.items()
        if isinstance(table, Table) and isinstance(now := after.by_id.get(id), Table)
        for index in table.indexes
        if all(each.id != index.id for each in now.indexes)
    ]
