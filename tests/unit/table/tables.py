"""Tables for tests, in few words, and a bench to write and check them on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    Check,
    Column,
    DescriptorState,
    ElementState,
    EnumType,
    ForeignKey,
    Goal,
    Inbound,
    Index,
    KeyPart,
    Table,
    TypeRef,
    replace,
)
from tenure.expr.types.datatype import Datum
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.table.consistency import check_indexes
from tenure.table.read import get, rows, visible
from tenure.table.rows import Layout, Layouts, Row
from tenure.table.write import TableWriter
from tests.unit.table.trees import CONTEXT

T = TypeVar("T")

DELETE_ONLY, WRITE_ONLY, PUBLIC = ElementState
INT, TEXT, NUMERIC = TypeRef("int8"), TypeRef("text"), TypeRef("numeric")

ID, A, B = 1, 2, 3
"""The columns of most tables here: id is the primary key, a and b are whole numbers."""


def column(id: int, name: str, type: TypeRef = INT, **more: Any) -> Column:
    return Column(id, name, type, **more)


def index(
    id: int,
    name: str,
    *columns: int,
    unique: bool = False,
    state: ElementState = PUBLIC,
    primary: int = 1,
    descending: Sequence[int] = (),
    **more: Any,
) -> Index:
    parts = tuple(KeyPart(each, each in descending) for each in columns)
    return Index(id, name, parts, unique, state, primary=primary, **more)


def table(
    *indexes: Index,
    columns: Sequence[Column] = (),
    key: Sequence[int] = (ID,),
    checks: Sequence[Check] = (),
    foreign_keys: Sequence[ForeignKey] = (),
    inbound: Sequence[Inbound] = (),
    id: int = 200,
    name: str = "t",
    version: int = 1,
) -> Table:
    """A table t(id, a, b), or with other columns, whose primary index is number 1."""
    return Table(
        id,
        version,
        ZERO_AT,
        name,
        "root",
        DescriptorState.PUBLIC,
        (),
        (),
        database=100,
        schema=101,
        columns=tuple(columns) or (column(ID, "id", is_nullable=False), column(A, "a"), column(B, "b")),
        primary=1,
        indexes=(index(1, f"{name}_pkey", *key, unique=True), *indexes),
        checks=tuple(checks),
        foreign_keys=tuple(foreign_keys),
        inbound=tuple(inbound),
    )


def enum(*members: object, id: int = 300) -> EnumType:
    return EnumType(
        id,
        1,
        ZERO_AT,
        "mood",
        "root",
        DescriptorState.PUBLIC,
        (),
        (),
        100,
        101,
        tuple(members),  # type: ignore[arg-type]
    )


class Bench:
    """One store, and any number of tables in the version that was shown last."""

    def __init__(self, store: Store, *tables: Table, enums: Sequence[EnumType] = ()) -> None:
        self.store = store
        self.layouts = Layouts(store.keyspace)
        self.enums = {each.id: each for each in enums}
        self.tables: dict[int, Table] = {}
        for each in tables:
            self.show(each)

    def show(self, table: Table) -> Layout:
        self.tables[table.id] = table
        return self.layout(table.id)

    def layout(self, id: int = 200) -> Layout:
        return self.layouts.of(self.tables[id], self.enums.__getitem__)

    def writer(self, id: int = 200, *, version: Table | None = None) -> TableWriter:
        layout = self.layout(id) if version is None else self.layouts.of(version, self.enums.__getitem__)
        return TableWriter(layout, self.layout, CONTEXT)

    def insert(self, *values: Datum, id: int = 200, version: Table | None = None) -> Row:
        """Values in the order of the columns that readers see."""
        writer = self.writer(id, version=version)
        named = dict(zip(writer.layout.public, values, strict=False))
        return self.statement(writer, lambda txn: writer.insert(txn, named))

    def update(
        self, key: Datum, changes: Mapping[int, Datum], *, id: int = 200, version: Table | None = None
    ) -> Row:
        writer = self.writer(id, version=version)
        return self.statement(writer, lambda txn: writer.update(txn, found(txn, writer.layout, key), changes))

    def delete(self, key: Datum, *, id: int = 200, version: Table | None = None) -> None:
        writer = self.writer(id, version=version)
        self.statement(writer, lambda txn: writer.delete(txn, found(txn, writer.layout, key)))

    def statement(self, writer: TableWriter, run: Callable[[Transaction], T]) -> T:
        def both(txn: Transaction) -> T:
            result = run(txn)
            writer.finish(txn)
            return result

        return self.store.transact(both)

    def rows(self, id: int = 200) -> list[tuple[Datum, ...]]:
        """What readers see, in key order."""
        layout = self.layout(id)
        return [tuple(visible(layout, row).values()) for row in rows(self.store.snapshot(), layout)]

    def entries(self, index: int, id: int = 200) -> dict[bytes, bytes]:
        return dict(self.store.snapshot().scan(self.store.keyspace.index_span(id, index)))

    def wrong(self, *filled: int, id: int = 200) -> list[str]:
        """What the oracle finds; `filled` are the indexes that are filled by now."""
        return check_indexes(self.store.snapshot(), self.layout(id), CONTEXT, filled=filled)


def found(txn: Transaction, layout: Layout, key: Datum) -> Row:
    row = get(txn, layout, key if isinstance(key, tuple) else (key,))
    assert row is not None, f"no row {key}"
    return row


def with_states(table: Table, state: ElementState, *indexes: int, goal: Goal = Goal.PUBLIC) -> Table:
    """The next version, with these indexes in another state."""
    changed = tuple(
        replace(each, state=state, goal=goal) if each.id in indexes else each for each in table.indexes
    )
    return replace(table, version=table.version + 1, indexes=changed)
