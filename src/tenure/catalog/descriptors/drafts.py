"""A transaction's own copy of the descriptors it changes, before the change is visible to others.

    declared      id -> descriptor with the change declared on it, or a new one
    descriptors   id -> the descriptor as the transaction itself sees it until its commit
    names         name key -> id, or None where this transaction has dropped a name
    entries       (database, name) -> entry of a database's map, or None
    made_from     id -> version, of changed descriptors and of those relied on; `logicals` of the same
    records       roles, memberships and privileges that it changes, with what each was made from
    emptied       id -> the table with new indexes: all rows in them are this transaction's own
    on_commit     id -> what becomes of a new temporary table at the end of each transaction

Until commit all of it is only here, so a rollback has nothing to undo, and a savepoint is a copy. Each
statement starts from a copy too: if it fails half-way, its draft is discarded. The versions that a draft was
made from are kept: publishing it proves, in the same transaction, that they are still current.

A name that a committed descriptor gives up drains; a name that only this draft has assigned is simply
removed.

Walk: `catalog.changes.table_changes` fills one, `catalog.leases.catalog_use` looks into it, `schema_change`
publishes it.
"""

from enum import Enum

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    DescriptorState,
    NameKey,
    Schema,
    SchemaEntry,
    Table,
    elements,
    is_dropped,
    place_of,
    replace,
)
from tenure.catalog.descriptors.draft_view import own_copy
from tenure.catalog.descriptors.equal_versions import carried, logical_of
from tenure.catalog.descriptors.role_records import LeasedRecord, RecordChange, RecordKey


class OnCommit(Enum):
    """What becomes of a temporary table when a transaction ends; without one of these its rows stay."""

    DELETE_ROWS = "delete rows"
    DROP = "drop"


class Draft:
    __slots__ = (
        *("declared", "descriptors", "emptied", "entries", "logicals"),
        *("made_from", "names", "on_commit", "records"),
    )

    def __init__(self) -> None:
        self.declared: dict[int, AnyDescriptor] = {}
        self.descriptors: dict[int, AnyDescriptor] = {}
        self.names: dict[NameKey, int | None] = {}
        self.entries: dict[tuple[int, str], SchemaEntry | None] = {}
        self.made_from: dict[int, int] = {}
        """The version of each descriptor when it was first changed; 0 for a new one."""
        self.logicals: dict[int, int] = {}
        """The `logical` of the same versions: a draft is carried over versions that have the same."""
        self.emptied: dict[int, Table] = {}
        """Committed tables that were truncated, as they were right after that."""
        self.records: dict[RecordKey, RecordChange] = {}
        self.on_commit: dict[int, OnCommit] = {}

    def __bool__(self) -> bool:
        return bool(self.declared or self.records)

    def copy(self) -> "Draft":
        draft = Draft()
        for name in Draft.__slots__:
            setattr(draft, name, dict(getattr(self, name)))
        return draft

    def set_record(self, key: RecordKey, record: LeasedRecord | None, *, former: LeasedRecord | None) -> None:
        """Changes a role, a membership or privileges; only the first `former` counts."""
        first = self.records[key].former if key in self.records else former
        self.records[key] = RecordChange(first, record)

    def split(self, schema: int) -> "Draft":
        """Takes the changes of one schema's objects out of this draft, and returns them as another."""
        apart = Draft()
        ids = {id for id, each in self.declared.items() if getattr(each, "schema", 0) == schema} | {schema}
        for name in ("declared", "descriptors", "made_from", "logicals", "emptied", "on_commit"):
            own, split = getattr(self, name), getattr(apart, name)
            for id in ids & own.keys():
                split[id] = own.pop(id)
        for place in [each for each in self.names if each.schema == schema]:
            apart.names[place] = self.names.pop(place)
        return apart

    def declare(self, descriptor: AnyDescriptor, *, made_from: int) -> None:
        """Adds a changed descriptor; only the first `made_from` counts."""
        self.made_from.setdefault(descriptor.id, made_from)
        self.logicals.setdefault(descriptor.id, logical_of(descriptor) if made_from else 0)
        self.declared[descriptor.id] = descriptor
        self.descriptors[descriptor.id] = own_copy(descriptor)

    def empty(self, table: Table, *, made_from: int) -> None:
        """Adds a committed table that has new indexes, and no rows but those still to be written."""
        self.declare(table, made_from=made_from)
        self.emptied[table.id] = table

    def rely_on(self, descriptor: AnyDescriptor) -> None:
        """Makes publishing prove that a descriptor is unchanged: a schema that gets a table."""
        self.made_from.setdefault(descriptor.id, descriptor.version)
        self.logicals.setdefault(descriptor.id, logical_of(descriptor))

    def carry(self, stored: AnyDescriptor, base: AnyDescriptor) -> None:
        """Makes the change one of the stored version, which equals the one that it was made from.

        What keeps `logical` is taken from the stored version, unless this draft changes it.
        """
        id = stored.id
        self.made_from[id] = stored.version
        if id in self.declared:
            self.put_declared(carried(self.declared[id], stored, base))

    def put_declared(self, descriptor: AnyDescriptor) -> None:
        """Replaces a declared descriptor by an equal one."""
        self.declared[descriptor.id] = descriptor
        self.descriptors[descriptor.id] = own_copy(descriptor)

    def is_new(self, id: int) -> bool:
        """Whether this very transaction creates the descriptor: no other can use it yet."""
        return self.made_from.get(id) == 0

    def new_descriptors(self) -> dict[int, AnyDescriptor]:
        """The descriptors that this very transaction creates."""
        return {id: each for id, each in self.declared.items() if self.is_new(id)}

    def is_emptied(self, id: int) -> bool:
        """Whether it is a committed table that this transaction has truncated and does not drop."""
        return id in self.emptied and not is_dropped(self.declared[id])

    def has_own_rows(self, id: int) -> bool:
        """Whether all rows of a table are this transaction's own: it has created or truncated the table."""
        return self.is_new(id) or self.is_emptied(id)

    def needs_completion(self, id: int) -> bool:
        """Whether rows of such a table may be older than one of its elements."""
        if not self.is_emptied(id):
            return self.is_new(id)
        table, emptied = self.declared[id], self.emptied[id]
        assert isinstance(table, Table)
        return [*elements(table)] != [*elements(emptied)]

    def of_own_rows(self) -> dict[int, AnyDescriptor]:
        """The descriptors that it creates, and the tables that it empties: no other transaction uses them."""
        return {id: each for id, each in self.declared.items() if self.has_own_rows(id)}

    def create(self, descriptor: AnyDescriptor) -> None:
        """Adds a new descriptor, with its name; a schema with its entry in its database's map."""
        self.declare(descriptor, made_from=0)
        self._take(descriptor)

    def move(self, former: AnyDescriptor, descriptor: AnyDescriptor) -> AnyDescriptor:
        """Gives a descriptor another name key; the former one drains, unless it was never published."""
        draining = self._give_up(former)
        place = place_of(descriptor)
        descriptor = replace(descriptor, draining=tuple(each for each in draining if each != place))
        self._take(descriptor, is_back=place in draining)
        self.declare(descriptor, made_from=former.version)
        return descriptor

    def drop(self, former: AnyDescriptor) -> AnyDescriptor:
        """Drops a descriptor; its name drains. One that this transaction created is simply removed."""
        draining = self._give_up(former)
        if self.is_new(former.id):
            for each in (self.declared, self.descriptors, self.made_from, self.logicals):
                each.pop(former.id, None)
            return former
        dropped = replace(former, state=DescriptorState.DROPPED, draining=draining)
        if isinstance(former, Schema) and place_of(former) in draining:
            key = former.database, former.name
            self.entries[key] = SchemaEntry(*key, former.id, DescriptorState.DROPPED)
        self.declare(dropped, made_from=former.version)
        return dropped

    def revive(self, descriptor: AnyDescriptor) -> None:
        """Restores a dropped descriptor, with its name; a schema with its entry in the map."""
        self._take(descriptor)
        self.declare(descriptor, made_from=descriptor.version)

    def handed_over(self) -> dict[int, frozenset[NameKey]]:
        """By descriptor, the names that it gives up here and that others get here."""
        found = {
            id: frozenset(place for place in each.draining if self.names.get(place) not in (None, id))
            for id, each in self.declared.items()
        }
        return {id: places for id, places in found.items() if places}

    def touch(self, database: Database) -> None:
        """Gives a database whose map changes a new version, although its own value stays."""
        self.declare(self.declared.get(database.id, database), made_from=database.version)

    def _take(self, descriptor: AnyDescriptor, *, is_back: bool = False) -> None:
        place = place_of(descriptor)
        if is_back:
            self.names.pop(place, None)  # its own former key again: nothing has changed
        else:
            self.names[place] = descriptor.id
        if isinstance(descriptor, Schema):
            key = descriptor.database, descriptor.name
            self.entries[key] = SchemaEntry(*key, descriptor.id, DescriptorState.PUBLIC)

    def _give_up(self, descriptor: AnyDescriptor) -> tuple[NameKey, ...]:
        """Removes its name; returns its draining names."""
        place = place_of(descriptor)
        was_given_here = self.names.get(place) == descriptor.id
        is_unknown = was_given_here and not any(place in each.draining for each in self.declared.values())
        if is_unknown:
            del self.names[place]
        else:
            self.names[place] = None
        if isinstance(descriptor, Schema):
            self._leave_map(descriptor, is_unknown)
        return descriptor.draining if was_given_here else (*descriptor.draining, place)

    def _leave_map(self, schema: Schema, is_unknown: bool) -> None:
        key = schema.database, schema.name
        if is_unknown:
            self.entries.pop(key, None)
        else:
            self.entries[key] = None
