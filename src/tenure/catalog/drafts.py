"""A transaction's own copy of what it changes in the catalog, before anybody else sees it.

    declared      id -> descriptor with the change declared on it, or a new one
    descriptors   id -> how the transaction itself sees it until its commit
    names         place -> id, or None where a name is gone for this transaction
    entries       (database, name) -> entry of a database's map, or None

Until commit all of it is here only, so a rollback has nothing to undo, and a savepoint is a copy.
What a draft was made from is remembered by version: publishing it proves, in the same
transaction, that the versions are still those.

Walk: `catalog.changes` fills one, `catalog.uses` looks into it, `schema_change` publishes it.
"""

from tenure.catalog.descriptors import (
    AnyDescriptor,
    Database,
    Place,
    Schema,
    SchemaEntry,
    State,
    place_of,
    replace,
)
from tenure.catalog.elements import own_copy


class Draft:
    __slots__ = ("declared", "descriptors", "entries", "made_from", "names")

    def __init__(self) -> None:
        self.declared: dict[int, AnyDescriptor] = {}
        self.descriptors: dict[int, AnyDescriptor] = {}
        self.names: dict[Place, int | None] = {}
        self.entries: dict[tuple[int, str], SchemaEntry | None] = {}
        self.made_from: dict[int, int] = {}
        """The version each descriptor had when it was first changed; 0 of a new one."""

    def __bool__(self) -> bool:
        return bool(self.declared)

    def copy(self) -> "Draft":
        draft = Draft()
        for name in Draft.__slots__:
            setattr(draft, name, dict(getattr(self, name)))
        return draft

    def declare(self, descriptor: AnyDescriptor, *, made_from: int) -> None:
        """Takes a changed descriptor in; `made_from` counts the first time."""
        self.made_from.setdefault(descriptor.id, made_from)
        self.declared[descriptor.id] = descriptor
        self.descriptors[descriptor.id] = own_copy(descriptor)

    def is_new(self, id: int) -> bool:
        """Whether the descriptor is made by this very transaction: nobody else can use it yet."""
        return self.made_from.get(id) == 0

    def create(self, descriptor: AnyDescriptor) -> None:
        """Makes a descriptor, with its name; a schema with its entry in its database's map."""
        self.declare(descriptor, made_from=0)
        self.names[place_of(descriptor)] = descriptor.id
        self._enter(descriptor)

    def move(self, former: AnyDescriptor, descriptor: AnyDescriptor) -> AnyDescriptor:
        """Gives a descriptor another place; the former one drains, unless nobody ever saw it."""
        old, new = place_of(former), place_of(descriptor)
        if self.is_new(former.id):
            self.names[old] = None
        else:
            descriptor = replace(descriptor, draining=(*descriptor.draining, old))
            self.names[old] = None
        self.names[new] = descriptor.id
        self._leave(former)
        self._enter(descriptor)
        self.declare(descriptor, made_from=former.version)
        return descriptor

    def drop(self, former: AnyDescriptor) -> AnyDescriptor:
        """Lets a descriptor go; its name drains. One that this transaction made was never there."""
        place = place_of(former)
        if self.is_new(former.id):
            self.names[place] = None
            self._leave(former)
            del self.declared[former.id], self.descriptors[former.id]
            return former
        dropped = replace(former, state=State.DROPPED, draining=(*former.draining, place))
        self.names[place] = None
        if isinstance(former, Schema):
            self.entries[former.database, former.name] = SchemaEntry(
                former.database, former.name, former.id, State.DROPPED
            )
        self.declare(dropped, made_from=former.version)
        return dropped

    def touch(self, database: Database) -> None:
        """A database whose map changes gets a new version, although its own value stays."""
        self.declare(self.declared.get(database.id, database), made_from=database.version)

    def _enter(self, descriptor: AnyDescriptor) -> None:
        if isinstance(descriptor, Schema):
            key = descriptor.database, descriptor.name
            self.entries[key] = SchemaEntry(*key, descriptor.id, State.PUBLIC)

    def _leave(self, descriptor: AnyDescriptor) -> None:
        if isinstance(descriptor, Schema):
            self.entries[descriptor.database, descriptor.name] = None
