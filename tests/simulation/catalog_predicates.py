"""What must hold of the catalog: names, maps and descriptors at every timestamp, and their copies.

Walk: `schema_predicates.check` calls these over a `SchemaIndex`; `schema_processes` asks `differences`.
"""

from collections.abc import Iterator

from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    DescriptorState,
    NameKey,
    Schema,
    SchemaEntry,
    Table,
    place_of,
)
from tenure.catalog.descriptors.name_entries import map_entries, places
from tenure.catalog.descriptors.role_records import LeasedRecord, key_of
from tenure.catalog.leases.catalog_cache import CatalogView, Key
from tenure.kv.snapshot import Snapshot
from tests.simulation.predicates import Violation
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import UseRecord
from tests.simulation.trace import Version as Revision


def differences(catalog: Catalog, version: CatalogView, snapshot: Snapshot) -> Iterator[str]:
    """I17: what a copy of the catalog answers otherwise than a full read of the same time."""
    stored = {each.id: each for each in catalog.list(snapshot)}
    known = {key for key in version._cache.values if isinstance(key, int)}
    for id in sorted(stored.keys() | known):
        if version.descriptor(id) != stored.get(id):
            yield f"descriptor {id} is not what is stored"
    names = {(each.database, each.schema, each.name): each.id for each in catalog.names(snapshot)}
    entries = {
        (each.database, each.name): each
        for database in stored.values()
        if isinstance(database, Database)
        for each in catalog.schema_map(snapshot, database.id)
    }
    records = {key_of(each): each for each in _leased_records(catalog, snapshot)}
    stored_names: dict[Key, object] = dict([*names.items(), *entries.items(), *records.items()])
    known_names = {key for key in version._cache.values if isinstance(key, tuple)}
    for key in sorted(stored_names.keys() | known_names, key=str):
        if version.find(key) != stored_names.get(key):
            yield f"name {key} is not what is stored"


def _leased_records(catalog: Catalog, snapshot: Snapshot) -> Iterator[LeasedRecord]:
    yield from catalog.roles.roles(snapshot)
    yield from catalog.roles.memberships(snapshot)
    yield from catalog.roles._privileges.scan(snapshot)


class _State:
    """The whole catalog at one time, moved on commit by commit."""

    def __init__(self) -> None:
        self.descriptors: dict[int, AnyDescriptor] = {}
        self.names: dict[NameKey, int] = {}
        self.entries: dict[tuple[int, str], SchemaEntry] = {}


def consistency(index: SchemaIndex) -> Iterator[Violation]:
    """I38: after every commit, names and maps are those of the descriptors, and no parent is missing."""
    state = _State()
    for at, changes in index.catalog_commits():
        _take_in(index, state, changes)
        txn = changes[0][1].writer
        for message in _problems(state):
            yield Violation("I38", f"at {to_text(at)}: {message}", changes[0][1].step, (txn.id,))


def _take_in(index: SchemaIndex, state: _State, changes: list[tuple[bytes, Revision]]) -> None:
    for key, revision in changes:
        kind, name, value = index.decoded(key, revision.value)
        target: dict[object, object] = getattr(state, kind)
        if value is None:
            target.pop(name, None)
        else:
            target[name] = value


def _problems(state: _State) -> Iterator[str]:
    expected: dict[NameKey, int] = {}
    entries: dict[tuple[int, str], SchemaEntry] = {}
    for descriptor in state.descriptors.values():
        for place in places(descriptor):
            if place in expected:
                yield f"{place} is a name of both {expected[place]} and {descriptor.id}"
            expected[place] = descriptor.id
        entries |= map_entries(descriptor)
        yield from _orphan(state, descriptor)
    if expected != state.names:
        known = expected.keys() | state.names.keys()
        wrong = [place for place in known if expected.get(place) != state.names.get(place)]
        yield f"names differ from descriptors: {sorted(wrong, key=str)}"
    if entries != state.entries:
        yield f"maps differ from schemas: {sorted(entries.items() ^ state.entries.items(), key=str)}"


def _orphan(state: _State, descriptor: AnyDescriptor) -> Iterator[str]:
    if descriptor.state is DescriptorState.DROPPED or isinstance(descriptor, Database):
        return
    parents = [descriptor.database, *([] if isinstance(descriptor, Schema) else [descriptor.schema])]
    for parent in parents:
        found = state.descriptors.get(parent)
        if found is None or found.state is DescriptorState.DROPPED:
            yield f"descriptor {descriptor.id} has lost its parent {parent}"


def draining(index: SchemaIndex) -> Iterator[Violation]:
    """I39: a name goes from an object, to another or to none, when no valid lease gives that object."""
    for place, revisions in index.names.items():
        former: int | None = None
        for revision, id in revisions:
            if former is not None and id != former:
                yield from _judge_removal(index, place, former, revision)
            former = id


def _judge_removal(index: SchemaIndex, place: NameKey, id: int, revision: Revision) -> Iterator[Violation]:
    own = index.trace.processes[revision.writer.id]
    for row in index.rows_before(revision.at):
        held = index.version_at(id, row.lease_at)
        is_named = (
            held is not None
            and held.state is not DescriptorState.DROPPED
            and place_of(held) == place
            and not held.closed_by  # who finds it so waits
        )
        if row.covers(id) and is_named and index.is_valid(row, revision.at) and row.process != own:
            message = f"{place} was taken from {id}, and {row.session} may still resolve it"
            yield Violation("I39", message, revision.step, (revision.writer.id,))


def _is_named_next(index: SchemaIndex, record: UseRecord, used: AnyDescriptor, place: NameKey) -> bool:
    """Under expiring leases a name is the store's, and what it names may be leased one version behind."""
    following = [each for _, each, _ in index.versions.get(used.id, ()) if each.version == used.version + 1]
    return record.session is None and any(place_of(each) == place for each in following)


def resolutions(index: SchemaIndex) -> Iterator[Violation]:
    """I39: a name used by a committed transaction led to what was so named, in that version or the last."""
    for record, at in index.committed_uses():
        for step, place, id, is_map, as_of in record.resolved:
            if is_map:
                yield from _judge_map(index, record.txn.id, place, id, as_of, at, step)
            elif index.name_at(place, as_of) != id and not (
                record.session is None and _is_leased_name(index, place, id, at)
            ):
                message = f"t{record.txn.id} resolved {place} to {id} under the lease at {as_of}"
                yield Violation("I39", message, step, (record.txn.id,))
        handed = {each.descriptor.id: each.descriptor for each in record.handed}
        for place, id in record.named.items():
            used = handed.get(id)
            is_it = (
                isinstance(used, Table) and used.state is DescriptorState.PUBLIC and place_of(used) == place
            )
            if used is not None and not is_it and not _is_named_next(index, record, used, place):
                message = f"t{record.txn.id} used {id} by the name {place}, which it had not"
                yield Violation("I39", message, record.txn.landed, (record.txn.id,))


def _is_leased_name(index: SchemaIndex, place: NameKey, id: int | None, at: Timestamp) -> bool:
    """Whether it was the name in one of the two versions that may be leased, where each is leased alone."""
    versions = (
        [] if id is None else [each for came_at, each, _ in index.versions.get(id, ()) if came_at <= at]
    )
    return any(each.state is DescriptorState.PUBLIC and place_of(each) == place for each in versions[-2:])


def _judge_map(
    index: SchemaIndex,
    txn: int,
    place: NameKey,
    id: int | None,
    lease_at: Timestamp,
    at: Timestamp,
    step: int,
) -> Iterator[Violation]:
    """The answer is the map's as of the lease, and that is of the database's newest version or the last."""
    if index.entry_at(place, lease_at) != id:
        message = f"t{txn} found {id} in the map at {place} under the lease at {to_text(lease_at)}"
        yield Violation("I39", message, step, (txn,))
    is_own = any(came_at == at and writer.id == txn for came_at, _, writer in index.versions[place.database])
    used = index.version_at(place.database, lease_at)
    now = index.version_at(
        place.database, at - 1 if is_own else at
    )  # its own version comes after its lookups
    if used is None or now is None:
        return
    if used.version < now.version - 1:
        message = f"t{txn} used the map of version {used.version} when {now.version} was there"
        yield Violation("I39", message, step, (txn,))
    elif used.version < now.version:
        index.trace.seen["name resolved by the old map"] += 1
