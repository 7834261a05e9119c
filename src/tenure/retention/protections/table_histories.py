"""The versions that tables had from a time on: what coverage is computed from.

    snapshot at `at`          the version that was current then
    history (at, read_at]     every later one
    the transaction's reads   nothing has come between its `read_at` and its commit

A protection of tables reads their descriptors alone; one of a database or a schema reads all descriptors,
because a table may have come from anywhere. They are part of what the transaction has read: a table that
comes under a target meanwhile, or moves to a place with another ttl, would not have been looked at.

Walk: `protection_store.ProtectionStore.protect` calls `read_histories`; this reads through `kv.store`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tenure.base.errors import UndefinedObject, WrongObjectType
from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, Database, DescriptorState, Schema, Table
from tenure.kv.keys import USER_TABLES, Span
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode, Protection

PAGE_ROWS = 1_000
"""Revisions per engine call."""


class TableHistories(NamedTuple):
    versions: Mapping[int, Sequence[Table]]
    """By id, oldest first."""
    newest: Mapping[int, AnyDescriptor]
    """The last version of everything that was read: tables, and the objects that contain them."""


def read_histories(
    txn: Transaction,
    store: Store,
    catalog: Catalog,
    protection: Protection,
    tables: Collection[int] | None,
) -> TableHistories:
    """The histories of the tables that are an object of the protection or may have been in one, and of
    `tables`.

    Of `tables` some may not exist; None is all of them.
    """
    unchanged = None if tables is None else _unchanged(txn, catalog, protection, tables)
    if unchanged is not None:
        return unchanged
    at, snapshot = protection.at, store.snapshot(protection.at)
    found: dict[int, AnyDescriptor | None] = {}
    for id in protection.objects:
        found[id] = catalog.get(snapshot, id)
        if found[id] is None and protection.mode is Mode.AFTER:
            found[id] = catalog.get(txn, id)
        _check_target(protection, id, found[id])
    if tables is None or any(isinstance(each, Database | Schema) for each in found.values()):
        spans = [store.keyspace.head_span(catalog.descriptors_head)]
    else:
        keys = [catalog.key(id) for id in {*found, *tables}]
        spans = [Span(key, key + b"\0") for key in sorted(keys)]
    versions: dict[int, list[Table]] = {}
    newest: dict[int, AnyDescriptor] = {}
    for span in spans:
        txn.read_span(span)
    for each in _descriptors(store, catalog, spans, since_at=at, until_at=txn.read_at):
        newest[each.id] = each
        if isinstance(each, Table):
            versions.setdefault(each.id, []).append(each)
    return TableHistories(versions, newest)


def _unchanged(
    txn: Transaction, catalog: Catalog, protection: Protection, tables: Collection[int]
) -> TableHistories | None:
    """The usual case, told by the newest versions alone: tables that have not changed since then."""
    ids = {*protection.objects, *(id for id in tables if id >= USER_TABLES)}
    if protection.at > txn.read_at:
        return None
    txn.read_ahead([catalog.key(id) for id in ids])
    newest: dict[int, Table] = {}
    for id in ids:
        found = catalog.get(txn, id)
        if not isinstance(found, Table) or found.modified_at > protection.at:
            return None
        newest[id] = found
    for id in protection.objects:
        _check_target(protection, id, newest[id])
    return TableHistories({id: [table] for id, table in newest.items()}, newest)


def _descriptors(
    store: Store, catalog: Catalog, spans: Sequence[Span], *, since_at: Timestamp, until_at: Timestamp
) -> Iterator[AnyDescriptor]:
    """Those that were current at `since_at`, then every later version up to `until_at`, by time per span."""
    snapshot = store.snapshot(since_at)
    for span in spans:
        for _, value in snapshot.scan(span):
            yield catalog.decode(value)
        through_at = since_at
        while through_at < until_at:
            page = store.history(span, since_at=through_at, until_at=until_at, limit=PAGE_ROWS)
            for revision in page.revisions:
                if revision.value is not None:
                    yield catalog.decode(revision.value)
            through_at = page.through_at


def _check_target(protection: Protection, id: int, descriptor: AnyDescriptor | None) -> None:
    """Refuses a target that covers nothing: a caller that then reads it would find out too late."""
    needs_public = protection.mode is Mode.AT
    if descriptor is None or (needs_public and descriptor.state is not DescriptorState.PUBLIC):
        raise UndefinedObject(f"there was no object with the id {id} at {to_text(protection.at)}")
    if not isinstance(descriptor, Database | Schema | Table):
        raise WrongObjectType(f'"{descriptor.name}" cannot be protected: it is no table, schema or database')
