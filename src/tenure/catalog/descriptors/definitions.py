"""Descriptors: the stored definitions of databases, schemas, tables, views, sequences and types.

A descriptor is a frozen, versioned value. A change makes the next version; `modified_at` is the commit
timestamp of the transaction that wrote it, set by the store. The parts of a table that need care while they
are added or dropped are **elements**, each with a state and a goal:

    state         writers                                        readers
    delete_only   delete existing entries, add none              do not see it
    write_only    keep it up to date, enforce it                 do not see it, do not rely on it
    public        keep it up to date, enforce it                 see it and rely on it

    goal public: delete_only ──► write_only ──► (backfill, validate) ──► public
    goal absent: public ──► write_only ──► delete_only ──► gone

The users of an object are listed in the object itself too, changed in the same draft: foreign keys as
`inbound`, views as `dependents`, tables as `referents` of a type and `dependents` of a sequence. So a drop
sees from an object what blocks it, and a new user of an object gives it a new version, which a concurrent
drop conflicts with.

Types and expressions are data here; `expr` gives them meaning. A column's `filled` is the value of rows that
were written before it existed: fixed, also if its default changes.

Walk: `catalog.changes.table_changes` makes new versions, `catalog.descriptors.validation` judges them,
`catalog.descriptors.catalog_records` keeps them, `catalog.leases.catalog_use` hands them out.
"""

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias, TypeVar

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv import records
from tenure.kv.records import Record

SYSTEM_DATABASE, SYSTEM_SCHEMA = 90, 91
DEFAULT_DATABASE, DEFAULT_SCHEMA = 100, 101
"""The ids that a new store uses; the next descriptor gets the one after."""

PUBLIC_SCHEMA = "public"
ROOT = "root"


class DescriptorState(Enum):
    """The state of a whole descriptor."""

    PUBLIC = "public"
    ADDING = "adding"
    DROPPED = "dropped"
    OFFLINE = "offline"
    COLLECTED = "collected"
    """Dropped, and its data is being removed: it cannot be brought back."""


class ElementState(Enum):
    DELETE_ONLY = "delete_only"
    WRITE_ONLY = "write_only"
    PUBLIC = "public"


class Goal(Enum):
    PUBLIC = "public"
    ABSENT = "absent"


class Action(Enum):
    """The action of a foreign key when the row it refers to is deleted or changed."""

    NO_ACTION = "no action"
    RESTRICT = "restrict"
    CASCADE = "cascade"
    SET_NULL = "set null"
    SET_DEFAULT = "set default"


class Deferral(Enum):
    """When a transaction checks a foreign key, unless SET CONSTRAINTS says otherwise."""

    NEVER = "never"
    """With each statement, always."""
    ON_REQUEST = "on request"
    """With each statement: DEFERRABLE."""
    AT_FIRST = "at first"
    """At its end: DEFERRABLE INITIALLY DEFERRED."""


class NameKey(Record, frozen=True):
    """The key of a name in the namespace; databases have (0, 0), schemas (database, 0)."""

    database: int
    schema: int
    name: str


class Grant(Record, frozen=True):
    role: str
    privileges: tuple[str, ...]
    grantable: tuple[str, ...] = ()


class Descriptor(Record, frozen=True):
    """The fields of all kinds; a new field goes last in each kind, with a default."""

    id: int
    version: int
    modified_at: Timestamp
    name: str
    owner: str
    state: DescriptorState
    privileges: tuple[Grant, ...]
    draining: tuple[NameKey, ...]
    """Former names that older leases may still resolve to this descriptor."""


class Database(Descriptor, frozen=True, tag="database"):
    """Its schemas are part of its value but stored as one key each: see `SchemaEntry`."""

    comment: str = ""
    closed_by: int = 0
    """The job of a transaction that gives its name to another object: who looks the name up waits for it."""
    converted_to: int = 0
    """The schema that was made of it, if it was dropped by a conversion."""
    logical: int = 0
    """See `descriptors.equal_versions`."""
    row: int = 0


class Schema(Descriptor, frozen=True, tag="schema"):
    database: int
    comment: str = ""
    closed_by: int = 0
    """See `Database.closed_by`."""
    logical: int = 0
    """See `descriptors.equal_versions`."""
    row: int = 0


class TypeRef(Record, frozen=True):
    """A column's type as data: "numeric" with modifiers (10, 2), an array of text, an enum by its id."""

    name: str
    modifiers: tuple[int, ...] = ()
    is_array: bool = False
    enum: int = 0


class Expression(Record, frozen=True):
    """A typed expression, encoded by `expr`; `columns` are the ids of those it reads."""

    tree: bytes
    text: str
    columns: tuple[int, ...] = ()
    sequences: tuple[int, ...] = ()
    """The sequences that it calls."""
    enums: tuple[int, ...] = ()
    """The types of users that it names."""


class Column(Record, frozen=True):
    id: int
    name: str
    type: TypeRef
    state: ElementState = ElementState.PUBLIC
    goal: Goal = Goal.PUBLIC
    is_nullable: bool = True
    default: Expression | None = None
    filled: bytes | None = None
    is_hidden: bool = False
    computed: Expression | None = None
    """For a column that replaces another: computes its value from the row, until it is public."""
    replaces: int = 0
    """The column whose name and position it takes when it becomes public."""
    reverse: Expression | None = None
    """Computes the replaced column from this one: becomes that one's `computed`, once this one is public."""
    identity: str = ""
    """How it was declared GENERATED ... AS IDENTITY: "always", "by default", or not at all."""
    generated: Expression | None = None
    """GENERATED ALWAYS AS ... STORED: its value in every row, from the row's other columns."""
    comment: str = ""


class KeyPart(Record, frozen=True):
    column: int
    is_descending: bool = False


class Index(Record, frozen=True):
    """The primary index holds whole rows; the entries of another point into `primary`."""

    id: int
    name: str
    parts: tuple[KeyPart, ...]
    is_unique: bool = False
    state: ElementState = ElementState.PUBLIC
    goal: Goal = Goal.PUBLIC
    predicate: Expression | None = None
    primary: int = 0
    """The primary index that its entries point into; a primary index has its own id."""
    replaces: int = 0
    """The index that it replaces when it becomes public."""
    is_constraint: bool = False
    """Made by UNIQUE or PRIMARY KEY: dropped by DROP CONSTRAINT, and shown to clients as a constraint."""
    comment: str = ""
    is_unread: bool = False
    """About to be dropped: written and enforced as before, but not read, and its uniqueness not relied on."""
    is_deferrable: bool = False
    """For a constraint: rows may be equal while a statement runs, if they are not at its end."""


class Check(Record, frozen=True):
    id: int
    name: str
    expression: Expression
    state: ElementState = ElementState.PUBLIC
    goal: Goal = Goal.PUBLIC
    not_null: int = 0
    """The column whose NOT NULL this represents while it is added or dropped; its expression has no tree."""
    is_validated: bool = True
    """False if added NOT VALID: enforced for new rows, not relied upon."""
    comment: str = ""


class ForeignKey(Record, frozen=True):
    id: int
    name: str
    columns: tuple[int, ...]
    target: int
    """The table referred to, which has an `Inbound` for it."""
    target_columns: tuple[int, ...]
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    state: ElementState = ElementState.PUBLIC
    goal: Goal = Goal.PUBLIC
    is_validated: bool = True
    """False if added NOT VALID: enforced for new rows, not relied upon."""
    comment: str = ""
    deferral: Deferral = Deferral.NEVER


class Inbound(Record, frozen=True):
    """A foreign key of another table that refers to this one."""

    table: int
    constraint: int


class Table(Descriptor, frozen=True, tag="table"):
    database: int
    schema: int
    columns: tuple[Column, ...]
    primary: int
    indexes: tuple[Index, ...]
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    inbound: tuple[Inbound, ...] = ()
    next_column: int = 1
    next_index: int = 1
    next_constraint: int = 1
    job: int = 0
    """The id of the schema change under way; one at a time."""
    is_locked: bool = False
    """Nothing that rows are read by changes from this version, or in the next: see `descriptors.locks`."""
    comment: str = ""
    dependents: tuple[int, ...] = ()
    """The views that read it."""
    sequences: tuple[int, ...] = ()
    """The sequences that its columns own, which are dropped with them."""
    is_closed: bool = False
    """A transaction is about to empty it: no other reads or writes it until the job has ended."""
    is_read_only: bool = False
    """Its job is about to reset it: until then others read it, and nobody writes it."""
    closed_by: int = 0
    """See `Database.closed_by`."""
    logical: int = 0
    """See `descriptors.equal_versions`."""
    row: int = 0
    is_lock_kept: bool = False
    """Locked by hand: a change that opens it closes it again."""
    watchers: tuple[int, ...] = ()
    """The changefeed jobs that it was locked for; they may have ended since."""

    def column(self, id: int) -> Column:
        return next(column for column in self.columns if column.id == id)

    def index(self, id: int) -> Index:
        return next(index for index in self.indexes if index.id == id)

    def column_named(self, name: str) -> Column | None:
        """The column that readers know by this name."""
        return next((each for each in visible(self.columns) if each.name == name), None)


class EnumMember(Record, frozen=True):
    label: str
    physical: bytes
    """The stored bytes: its order among the others, never changed."""
    state: ElementState = ElementState.PUBLIC
    """Write_only if it is being added: it may be read, not yet written."""


class EnumType(Descriptor, frozen=True, tag="enum"):
    database: int
    schema: int
    members: tuple[EnumMember, ...] = ()
    referents: tuple[int, ...] = ()
    """The tables and views that use it: it cannot be dropped while there are any."""
    job: int = 0
    comment: str = ""
    closed_by: int = 0
    """See `Database.closed_by`."""
    logical: int = 0
    """See `descriptors.equal_versions`."""
    row: int = 0


class ViewColumn(Record, frozen=True):
    """A column of a view; others refer to it by its number, from 1 on."""

    name: str
    type: TypeRef
    comment: str = ""


class SearchPath(Record, frozen=True):
    """The search path when a view was made."""

    database: int
    schemas: tuple[str, ...]


class ViewSource(Record, frozen=True):
    """The meaning of a name in a view's text when the view was made; the object may have been renamed
    since.
    """

    name: tuple[str, ...]
    """The components of the name, as written."""
    id: int
    columns: tuple[tuple[str, int], ...]
    """The names that its columns had, with their ids; for a view, with their numbers."""


class Depends(Record, frozen=True):
    """An object that a view needs: columns of a table or view, a type, a sequence."""

    id: int
    columns: tuple[int, ...] = ()


class View(Descriptor, frozen=True, tag="view"):
    """A query with a name. Its text is stored as written; `sources` say what the names in it mean."""

    database: int
    schema: int
    query: str
    columns: tuple[ViewColumn, ...]
    path: SearchPath
    sources: tuple[ViewSource, ...] = ()
    depends: tuple[Depends, ...] = ()
    dependents: tuple[int, ...] = ()
    """The views that read it."""
    comment: str = ""
    closed_by: int = 0
    """See `Database.closed_by`."""
    logical: int = 0
    """See `descriptors.equal_versions`."""
    row: int = 0


class OwnedBy(Record, frozen=True):
    """The column that owns a sequence."""

    table: int
    column: int


class Sequence(Descriptor, frozen=True, tag="sequence"):
    """The definition of a sequence; its values are elsewhere, since they belong to no transaction."""

    database: int
    schema: int
    value_type: TypeRef
    """int2, int4 or int8."""
    start: int
    increment: int
    minimum: int
    maximum: int
    cache: int = 1
    is_cycle: bool = False
    owned_by: OwnedBy | None = None
    dependents: tuple[int, ...] = ()
    """The tables whose defaults call it, and the views that do."""
    comment: str = ""
    closed_by: int = 0
    """See `Database.closed_by`."""
    logical: int = 0
    """See `descriptors.equal_versions`."""
    row: int = 0


AnyDescriptor: TypeAlias = Database | Schema | Table | EnumType | View | Sequence
Contained: TypeAlias = Table | EnumType | View | Sequence
"""The kinds of objects in a schema."""
Element: TypeAlias = Column | Index | Check | ForeignKey

D = TypeVar("D", bound=Descriptor)
E = TypeVar("E", Column, Index, Check, ForeignKey)

replace = records.replace


class SchemaEntry(Record, frozen=True):
    """One entry of a database's map of its schemas."""

    database: int
    name: str
    id: int
    state: DescriptorState


def visible(elements: tuple[E, ...]) -> Iterator[E]:
    """The elements that readers see and rely on."""
    return (each for each in elements if each.state is ElementState.PUBLIC)


def readable(indexes: tuple[Index, ...]) -> Iterator[Index]:
    """The indexes that may be read, and relied upon to be unique."""
    return (each for each in visible(indexes) if not each.is_unread)


def written(elements: tuple[E, ...]) -> Iterator[E]:
    """The elements that writers keep up to date and enforce."""
    return (each for each in elements if each.state is not ElementState.DELETE_ONLY)


def elements(table: Table) -> Iterator[Element]:
    yield from table.columns
    yield from table.indexes
    yield from table.checks
    yield from table.foreign_keys


def unfinished(table: Table) -> bool:
    """Whether an element has a change under way."""
    return any((each.state, each.goal) != (ElementState.PUBLIC, Goal.PUBLIC) for each in elements(table))


def place_of(descriptor: AnyDescriptor) -> NameKey:
    """The key of its name."""
    match descriptor:
        case Database():
            return NameKey(0, 0, descriptor.name)
        case Schema():
            return NameKey(descriptor.database, 0, descriptor.name)
        case _:
            return NameKey(descriptor.database, descriptor.schema, descriptor.name)


_DROPPED = (DescriptorState.DROPPED, DescriptorState.COLLECTED)


def is_dropped(descriptor: Descriptor) -> bool:
    return descriptor.state in _DROPPED


def job_of(descriptor: AnyDescriptor) -> int:
    """The job of the change of it that is under way; 0: none."""
    job: int = getattr(descriptor, "job", 0)
    return job or descriptor.closed_by


def next_version(descriptor: D) -> D:
    """The same as the next version, to be written; the store sets its time."""
    return replace(descriptor, version=descriptor.version + 1, modified_at=ZERO_AT)
