"""Tables to change in the tests of the catalog, and a catalog that is two dictionaries."""

from collections.abc import Iterator

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.changes.table_changes import AddColumn, AddIndex, NamedKeyColumn, TableChange
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    AnyDescriptor,
    Check,
    Column,
    Database,
    DescriptorState,
    Expression,
    Index,
    KeyPart,
    NameKey,
    Schema,
    SchemaEntry,
    Table,
    TypeRef,
    next_version,
    place_of,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.elements import (
    advance,
    first_stage,
    is_finished,
    is_prepared,
    is_shown,
    shown,
)
from tenure.schema_change.stages import with_preparations

INT, TEXT = TypeRef("int4"), TypeRef("text")
ROW_ID = Expression(b"rowid", "unique_rowid()")


def reading(*columns: int, text: str = "true") -> Expression:
    return Expression(b"tree", text, columns)


def column(name: str, **fields: object) -> AddColumn:
    return replace(AddColumn(name, INT), **fields)


def index(name: str, *columns: str, **fields: object) -> AddIndex:
    return replace(AddIndex(name, tuple(map(NamedKeyColumn, columns))), **fields)


def users(**fields: object) -> Table:
    """users(id primary key, name text not null, age int, city text): an index, a check."""
    table = Table(
        200,
        1,
        ZERO_AT,
        "users",
        ROOT,
        DescriptorState.PUBLIC,
        (),
        (),
        database=DEFAULT_DATABASE,
        schema=DEFAULT_SCHEMA,
        columns=(
            Column(1, "id", INT, is_nullable=False),
            Column(2, "name", TEXT, is_nullable=False),
            Column(3, "age", INT),
            Column(4, "city", TEXT, is_nullable=False, default=Expression(b"x", "'x'")),
        ),
        primary=1,
        indexes=(
            Index(1, "users_pkey", (KeyPart(1),), is_unique=True, primary=1, is_constraint=True),
            Index(2, "users_name", (KeyPart(2),), is_unique=True, primary=1, is_constraint=True),
            Index(3, "users_age", (KeyPart(3), KeyPart(4)), primary=1, predicate=reading(4)),
        ),
        checks=(Check(1, "users_age_check", reading(3, text="age > 0")),),
        next_column=5,
        next_index=4,
        next_constraint=2,
    )
    return replace(table, **fields)


def declared(table: Table, *changes: TableChange) -> Table:
    for change in changes:
        table = change.apply(table)
    return table


def stages(before: Table, target: Table) -> Iterator[Table]:
    """The versions that are published for a declared change, one after another."""
    table: AnyDescriptor = with_preparations(before, target)
    assert isinstance(table, Table)
    if not is_shown(table):
        table = first_stage(table)
        assert isinstance(table, Table)
        while not is_prepared(table):
            yield table
            table = advance(table)
            assert isinstance(table, Table)
        yield table
    table = shown(target)
    while True:
        assert isinstance(table, Table)
        yield table
        if is_finished(table):
            return
        table = advance(table)


class Shelf:
    """The committed catalog, and a draft on top of it."""

    def __init__(self, *descriptors: AnyDescriptor) -> None:
        self.descriptors: dict[int, AnyDescriptor] = {}
        self.names: dict[NameKey, int] = {}
        self.entries: dict[tuple[int, str], SchemaEntry] = {}
        self.draft = Draft()
        self.temporary = None
        for each in (database(), schema(), *descriptors):
            self.descriptors[each.id] = each
            self.names[place_of(each)] = each.id
            if isinstance(each, Schema):
                entry = SchemaEntry(each.database, each.name, each.id, DescriptorState.PUBLIC)
                self.entries[each.database, each.name] = entry

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self.descriptors.get(id)

    def id_at(self, place: NameKey) -> int | None:
        return self.names.get(place)

    def commit(self) -> None:
        """Makes the draft the catalog, as the schema changer does when nobody else looks.

        A name that the draft gives up and takes again does not drain then: nobody knows its former owner.
        """
        for id, descriptor in self.draft.declared.items():
            draining = tuple(place for place in descriptor.draining if not self.draft.names.get(place))
            self.descriptors[id] = next_version(shown(replace(descriptor, draining=draining)))
        for place, given in self.draft.names.items():
            if given is not None:
                self.names[place] = given
        for key, entry in self.draft.entries.items():
            if entry is None:
                del self.entries[key]
            else:
                self.entries[key] = entry
        self.draft = Draft()

    def drain(self) -> None:
        """Takes all changes to their ends; former names go."""
        for id, descriptor in self.descriptors.items():
            for place in descriptor.draining:
                del self.names[place]
            while not is_finished(descriptor):
                descriptor = advance(descriptor)
            self.descriptors[id] = descriptor
        self.entries = {
            key: entry for key, entry in self.entries.items() if entry.state is not DescriptorState.DROPPED
        }


def database(id: int = DEFAULT_DATABASE, name: str = "defaultdb") -> Database:
    return Database(id, 1, ZERO_AT, name, ROOT, DescriptorState.PUBLIC, (), ())


def schema(id: int = DEFAULT_SCHEMA, name: str = "public", *, database: int = DEFAULT_DATABASE) -> Schema:
    return Schema(id, 1, ZERO_AT, name, ROOT, DescriptorState.PUBLIC, (), (), database=database)
