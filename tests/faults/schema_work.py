"""What a node under test does to tables and their schema, without SQL: rows, reads and changes.

    tables a, b, c   (id int8 primary key, n int8, tag text)
    a row's id       belongs to one thread of one process for ever; its tag names its last writer

Every transaction binds to a lease, takes its descriptors from it, says in the log what it is about to
do and what it uses, commits, and says what came of it. Names of new indexes, columns and schemas
name the transaction that makes them, so that the history tells which of them was ever seen. A column
named "c7 ..." holds 7 in every row, whoever wrote it.

Logged, each with the transaction's op: intent (session, uses, writes; of a change also which, table,
element), then ack, failed or unknown; unseen (the next transaction of this node does not see what a
change has added); read; claim (something was seen that must not be).

Walk: `schema_worker` runs these in threads, the scenarios' own node too; `schema_checker` judges.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from tenure.base.errors import OutcomeUnknown, SessionLost, StoreError, TenureError
from tenure.catalog.changes.drops import drop_schemas
from tenure.catalog.changes.object_changes import create_schema, create_table, rename_object
from tenure.catalog.changes.table_changes import (
    AddColumn,
    AddIndex,
    DropColumn,
    DropIndex,
    NamedKeyColumn,
    alter,
)
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    AnyDescriptor,
    DescriptorState,
    ElementState,
    Expression,
    Schema,
    Table,
    TypeRef,
    elements,
    readable,
    visible,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_pins import bound
from tenure.expr.tree.build import const
from tenure.expr.tree.expressions import to_stored
from tenure.expr.types.type_names import type_of
from tenure.node import Node
from tenure.table.columns import filled_with
from tenure.table.read import get, rows, scan
from tenure.table.rows import Layout
from tenure.table.write import TableWriter
from tests.faults.log import Log

TABLES = ("a", "b", "c")
ID, N, TAG = 1, 2, 3
INT, TEXT = TypeRef("int8"), TypeRef("text")

ROWS_MAX = 40
"""Of one thread: from then on rows go as often as they come."""

EXTRAS_MAX = 4
"""Indexes, columns and schemas beyond which one goes rather than comes."""


def create_tables(node: Node) -> list[int]:
    """The tables of a fresh store, by id."""
    ids = []
    use = node.leases.bind(node.store.begin())
    for name in TABLES:
        id = node.catalog.fresh_id(use.txn)
        create_table(
            use.draft,
            use,
            id=id,
            schema=DEFAULT_SCHEMA,
            name=name,
            owner=ROOT,
            columns=[AddColumn("id", INT, is_nullable=False), AddColumn("n", INT), AddColumn("tag", TEXT)],
            row_id=constant(0),
            key=(NamedKeyColumn("id"),),
        )
        ids.append(id)
    node.changer.commit(use)
    return ids


def constant(value: int) -> Expression:
    return to_stored(const(value, type_of(INT)).node, "")


class Write(NamedTuple):
    table: int
    id: int
    n: int | None
    """None deletes the row."""


class Known(NamedTuple):
    """A row as it was last acknowledged to its owner."""

    n: int
    tag: str


class Work:
    """Transactions of one thread, logged."""

    def __init__(self, node: Node, log: Log, name: str, rng: random.Random) -> None:
        self.node = node
        self.log = log
        self.rng = rng
        self._name = name
        self._numbers = count(1)

    def next_op(self) -> str:
        return f"{self._name}/{next(self._numbers)}"

    @contextmanager
    def use(self, op: str) -> Iterator[CatalogUse]:
        use = self.node.leases.bind(self.node.store.begin(), statement=op)
        try:
            yield use
        finally:
            use.close()

    def table(self, use: CatalogUse, id: int) -> Table:
        table = use.descriptor(id)
        assert isinstance(table, Table), f"table {id} is not there"
        return table

    def layout(self, use: CatalogUse, id: int) -> Layout:
        return self.node.layouts.of(self.table(use, id))

    def write(self, use: CatalogUse, write: Write, op: str) -> None:
        layout = self.layout(use, write.table)
        writer = TableWriter(layout, lambda id: self.layout(use, id), self.node.context())
        row = get(use.txn, layout, [write.id])
        if write.n is None:
            assert row is not None, f"row {write.id} is not there to be deleted"
            writer.delete(use.txn, row)
        elif row is None:
            writer.insert(use.txn, {ID: write.id, N: write.n, TAG: op})
        else:
            writer.update(use.txn, row, {N: write.n, TAG: op})
        writer.finish(use.txn)

    def commit(self, use: CatalogUse, op: str, commit: Callable[[CatalogUse], int], **intent: Any) -> str:
        """Commits between an intent and what came of it: ack, failed or unknown."""
        self.log.write("intent", op=op, session=bound(use).session.id, **intent)
        try:
            at = commit(use)
        except OutcomeUnknown as error:
            self.log.write("unknown", op=op, why=str(error))
            return "unknown"
        except TenureError as error:
            self.log.write("failed", op=op, state=error.sqlstate, why=str(error), is_sure=_is_sure(error))
            return "failed"
        self.log.write("ack", op=op, at=at)
        return "ack"


def _is_sure(error: TenureError) -> bool:
    """Whether a change that ends so has not happened; if its store or session went away, nobody tells."""
    return not isinstance(error, StoreError | SessionLost)


class RowWork(Work):
    """Inserts, updates and deletes rows of its own, and reads them."""

    def __init__(
        self,
        node: Node,
        log: Log,
        name: str,
        rng: random.Random,
        *,
        tables: Sequence[int],
        first_id: int,
        pause_seconds: float = 0.0,
    ) -> None:
        super().__init__(node, log, name, rng)
        self._tables = tables
        self._ids = count(first_id)
        self._pause_seconds = pause_seconds
        self.known: dict[tuple[int, int], Known] = {}

    def step(self) -> None:
        if self.known and self.rng.random() < 0.3:
            self._read()
        else:
            self._write(self._writes())

    def _writes(self) -> list[Write]:
        """One or two rows, in different tables."""
        tables = self.rng.sample(self._tables, self.rng.choice((1, 1, 2)))
        return [self._choose(table) for table in tables]

    def _choose(self, table: int) -> Write:
        mine = [key for key in self.known if key[0] == table]
        kinds = ("insert", "update", "delete")
        weights = (4, 4, 1) if len(mine) < ROWS_MAX else (1, 4, 2)
        kind = self.rng.choices(kinds, weights)[0] if mine else "insert"
        if kind == "insert":
            return Write(table, next(self._ids), self.rng.randrange(5))
        key = self.rng.choice(mine)
        return Write(*key, None if kind == "delete" else self.known[key].n + 1)

    def _write(self, writes: list[Write]) -> None:
        op = self.next_op()
        with self.use(op) as use:
            for write in writes:
                self.write(use, write, op)
            if self._pause_seconds:
                time.sleep(self.rng.uniform(0, self._pause_seconds))
            uses = [(write.table, self.table(use, write.table).version) for write in writes]
            outcome = self.commit(use, op, CatalogUse.commit, uses=uses, writes=writes)
        for write in writes:
            self._remember(write, op, outcome)

    def _remember(self, write: Write, op: str, outcome: str) -> None:
        """A row whose last write came to nobody knows what is left alone from then on."""
        key = write.table, write.id
        if outcome == "unknown" or (outcome == "ack" and write.n is None):
            self.known.pop(key, None)
        elif outcome == "ack" and write.n is not None:
            self.known[key] = Known(write.n, op)

    def _read(self) -> None:
        key = self.rng.choice(list(self.known))
        op = self.next_op()
        with self.use(op) as use:
            layout = self.layout(use, key[0])
            wrong = list(wrong_of(use, layout, key[1], self.known[key]))
            use.check()  # one that was ended may have lost what it relied on
            self.log.write("read", op=op)
            for what in wrong:
                self.log.write("claim", what=f"{op}: row {key} under version {layout.table.version}: {what}")


def wrong_of(use: CatalogUse, layout: Layout, id: int, known: Known) -> Iterator[str]:
    """What a read sees of an acknowledged row that it must not, by its key and along every index."""
    row = get(use.txn, layout, [id])
    if row is None:
        yield "it is lost"
        return
    if (row.values[N], row.values[TAG]) != known:
        yield f"it is {row.values} and was acknowledged as {known}"
    for column in visible(layout.table.columns):
        if column.name.startswith("c") and row.values[column.id] != constant_of(column.name):
            yield f'column "{column.name}" is {row.values[column.id]}'
    for index in readable(layout.table.indexes):
        first = index.parts[0].column
        found = scan(use.txn, layout, index.id, prefix=(row.values[first],))
        if index.id != layout.table.primary and row.key not in [each.key for each in found]:
            yield f'index "{index.name}" does not lead to it'


def constant_of(column: str) -> int:
    return int(column.split()[0][1:])


class ChangeWork(Work):
    """Changes of the schema, one after the other."""

    def __init__(
        self,
        node: Node,
        log: Log,
        name: str,
        rng: random.Random,
        *,
        tables: Sequence[int],
        first_id: int,
    ) -> None:
        super().__init__(node, log, name, rng)
        self._tables = tables
        self._ids = count(first_id)

    def step(self) -> None:
        self.change(self.rng.choice(list(KINDS)), self.rng.choice(self._tables))

    def change(self, kind: str, table: int) -> str:
        op = self.next_op()
        with self.use(f"{kind} {op}") as use:
            told = KINDS[kind](self, use, table, op)
            if told is None:
                return "nothing to do"
            intent: dict[str, Any] = {"change": kind, "uses": [], "writes": []} | told
            outcome = self.commit(use, op, self.node.changer.commit, **intent)
        if outcome == "ack" and "adds" in told:
            self._look(table, told["adds"], op)
        return outcome

    def _look(self, table: int, name: str, op: str) -> None:
        """What a statement has changed, the next one on this node sees, unless another drops it."""
        with self.use(op) as use:
            seen = self.table(use, table)
            if name not in {each.name for each in elements(seen) if each.state is ElementState.PUBLIC}:
                self.log.write("unseen", op=op, version=seen.version)

    # ── the kinds: each declares in the use's draft and says what the history must show ───────

    def _index(self, use: CatalogUse, table: int, op: str) -> dict[str, Any] | None:
        if self._is_full(use, table):
            return self._drop_index(use, table, op)
        return self._add_index(use, table, op, "n")

    def _unique(self, use: CatalogUse, table: int, op: str) -> dict[str, Any] | None:
        if self._is_full(use, table):
            return self._drop_index(use, table, op)
        return self._add_index(use, table, op, "tag", is_unique=True)

    def _bad_unique(self, use: CatalogUse, table: int, op: str) -> dict[str, Any] | None:
        """Rows that are equal are in its way: it must leave no trace."""
        layout = self.layout(use, table)
        seen = [row.values[N] for row in rows(self.node.store.snapshot(), layout, limit=20)]
        if len(set(seen)) == len(seen):
            return None  # it would be made, and then be in the way of all the load
        return self._add_index(use, table, op, "n", is_unique=True)

    def _is_full(self, use: CatalogUse, table: int) -> bool:
        return len(self.table(use, table).indexes) > EXTRAS_MAX

    def _add_index(
        self, use: CatalogUse, table: int, op: str, column: str, *, is_unique: bool = False
    ) -> dict[str, Any]:
        name = f"i {op}"
        alter(use.draft, use, table, AddIndex(name, (NamedKeyColumn(column),), is_unique))
        return {"table": table, "adds": name}

    def _drop_index(self, use: CatalogUse, table: int, op: str) -> dict[str, Any] | None:
        names = [each.name for each in visible(self.table(use, table).indexes) if each.name.startswith("i ")]
        if not names:
            return None
        name = self.rng.choice(names)
        alter(use.draft, use, table, DropIndex(name))
        return {"table": table, "drops": name}

    def _column(self, use: CatalogUse, table: int, op: str) -> dict[str, Any] | None:
        names = [each.name for each in visible(self.table(use, table).columns) if each.name.startswith("c")]
        if len(names) >= EXTRAS_MAX:
            name = self.rng.choice(names)
            alter(use.draft, use, table, DropColumn(name))
            return {"table": table, "drops": name}
        value = self.rng.randrange(100)
        name = f"c{value} {op}"
        filled = filled_with(type_of(INT), value)
        column = AddColumn(name, INT, is_nullable=False, default=constant(value), filled=filled)
        alter(use.draft, use, table, column)
        return {"table": table, "adds": name}

    def _rename(self, use: CatalogUse, table: int, op: str) -> dict[str, Any] | None:
        """Back and forth between its letter and a name that nothing else has."""
        letter = TABLES[self._tables.index(table)]
        name = letter if " " in self.table(use, table).name else f"{letter} {op}"
        rename_object(use.draft, use, table, name)
        return {"table": table, "name": name}

    def _with_rows(self, use: CatalogUse, table: int, op: str) -> dict[str, Any] | None:
        """DDL and DML in one transaction, in either order."""
        writes = [Write(table, next(self._ids), 0) for _ in range(3)]
        is_first = self.rng.random() < 0.5
        for write in writes * is_first:
            self.write(use, write, f"{op}#{write.id}")
        told = self._add_index(use, table, op, "tag", is_unique=True)
        for write in writes * (not is_first):
            self.write(use, write, f"{op}#{write.id}")
        return {**told, "writes": writes}

    def _schema(self, use: CatalogUse, table: int, op: str) -> dict[str, Any] | None:
        schemas = [entry.id for entry in self._schemas(use)]
        if len(schemas) < EXTRAS_MAX:
            id = self.node.catalog.fresh_id(use.txn)
            name = f"s {op}"
            create_schema(use.draft, use, id=id, database=DEFAULT_DATABASE, name=name, owner=ROOT)
            return {"creates": name}
        id = self.rng.choice(schemas)
        if use.descriptor(id) is None:
            return None
        drop_schemas(use.draft, use, [id], [])
        return {"ends": id}

    def _schemas(self, use: CatalogUse) -> list[AnyDescriptor]:
        entries = self.node.catalog.schema_map(self.node.store.snapshot(), DEFAULT_DATABASE)
        found = [use.descriptor(entry.id) for entry in entries if entry.name.startswith("s ")]
        return [each for each in found if isinstance(each, Schema) and each.state is DescriptorState.PUBLIC]


Declares = Callable[[ChangeWork, CatalogUse, int, str], dict[str, Any] | None]

KINDS: dict[str, Declares] = {
    "index": ChangeWork._index,
    "unique": ChangeWork._unique,
    "bad_unique": ChangeWork._bad_unique,
    "drop_index": ChangeWork._drop_index,
    "column": ChangeWork._column,
    "rename": ChangeWork._rename,
    "with_rows": ChangeWork._with_rows,
    "schema": ChangeWork._schema,
}
