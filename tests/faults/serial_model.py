"""Statements as data: what each says to a node, and what it answers and does if nobody else is there.

    Read(a, Between(3, 9))       SELECT ... WHERE id BETWEEN 3 AND 9      rows, in the order of their ids
    Sum(a, InGroup(2))           SELECT count(*), sum(val) ...            one row
    Insert, Upsert, Update, Delete                                        how many rows
    Import(a, rows)              IMPORT INTO                              how many rows

A transaction is some of these, one after the other. `run` does one to a state, and raises `Duplicate` where
a node has to say 23505. So whoever knows in which order transactions took effect knows what each must have
seen: rows that were there, and that no others were.

Walk: `import_load` says them to nodes; `serial_checker` runs them over a state of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

TABLES = ("a", "b")
COLUMNS = "id, grp, val, u, tag"

SETUP = tuple(
    statement
    for table in TABLES
    for statement in (
        f"CREATE TABLE {table} (id int8 PRIMARY KEY, grp int8 NOT NULL, val int8 NOT NULL,"
        f" u int8 UNIQUE, tag int8 NOT NULL)",
        f"CREATE INDEX {table}_by_grp ON {table} (grp)",
    )
)


class Row(NamedTuple):
    id: int
    grp: int
    val: int
    u: int | None
    """One of its kind in the table, where it is given."""
    tag: int
    """The attempt that wrote it last."""


Rows = Mapping[int, Row]
State = dict[str, Rows]
Answer = int | tuple[tuple[int | None, ...], ...]


class Duplicate(Exception):
    """Two rows would have the same key."""


# ── which rows ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ById:
    id: int

    @property
    def sql(self) -> str:
        return f"id = {self.id}"

    def has(self, row: Row) -> bool:
        return row.id == self.id


@dataclass(frozen=True)
class Between:
    lo: int
    hi: int

    @property
    def sql(self) -> str:
        return f"id BETWEEN {self.lo} AND {self.hi}"

    def has(self, row: Row) -> bool:
        return self.lo <= row.id <= self.hi


@dataclass(frozen=True)
class InGroup:
    grp: int

    @property
    def sql(self) -> str:
        return f"grp = {self.grp}"

    def has(self, row: Row) -> bool:
        return row.grp == self.grp


@dataclass(frozen=True)
class Unique:
    u: int

    @property
    def sql(self) -> str:
        return f"u = {self.u}"

    def has(self, row: Row) -> bool:
        return row.u == self.u


Where = ById | Between | InGroup | Unique


# ── statements ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Read:
    table: str
    where: Where
    limit: int | None = None
    is_last_first: bool = False
    is_locking: bool = False

    def sql(self, as_of: str = "") -> str:
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        order = f"ORDER BY id{' DESC' if self.is_last_first else ''}{limit}"
        lock = " FOR UPDATE" if self.is_locking else ""
        return f"SELECT {COLUMNS} FROM {self.table}{as_of} WHERE {self.where.sql} {order}{lock}"

    def run(self, state: State) -> Answer:
        return tuple(_chosen(state[self.table], self.where, reverse=self.is_last_first)[: self.limit])


@dataclass(frozen=True)
class Sum:
    table: str
    where: Where

    def sql(self, as_of: str = "") -> str:
        of = "count(*), sum(val)::int8, max(id), count(u)"
        return f"SELECT {of} FROM {self.table}{as_of} WHERE {self.where.sql}"

    def run(self, state: State) -> Answer:
        rows = _chosen(state[self.table], self.where)
        if not rows:
            return ((0, None, None, 0),)
        units = sum(row.u is not None for row in rows)
        return ((len(rows), sum(row.val for row in rows), rows[-1].id, units),)


@dataclass(frozen=True)
class Insert:
    table: str
    row: Row

    def sql(self) -> str:
        values = ", ".join("NULL" if value is None else str(value) for value in self.row)
        return f"INSERT INTO {self.table} VALUES ({values})"

    def run(self, state: State) -> Answer:
        return _add(state, self.table, [self.row])


@dataclass(frozen=True)
class Upsert:
    """Adds to the row that is there, if one is."""

    table: str
    row: Row

    def sql(self) -> str:
        changes = f"val = {self.table}.val + excluded.val, tag = excluded.tag"
        return f"{Insert(self.table, self.row).sql()} ON CONFLICT (id) DO UPDATE SET {changes}"

    def run(self, state: State) -> Answer:
        there = state[self.table].get(self.row.id)
        if there is None:
            return _add(state, self.table, [self.row])
        changed = there._replace(val=there.val + self.row.val, tag=self.row.tag)
        state[self.table] = {**state[self.table], there.id: changed}
        return 1


@dataclass(frozen=True)
class Update:
    table: str
    where: Where
    grp: int
    more: int
    tag: int

    def sql(self) -> str:
        changes = f"grp = {self.grp}, val = val + {self.more}, tag = {self.tag}"
        return f"UPDATE {self.table} SET {changes} WHERE {self.where.sql}"

    def run(self, state: State) -> Answer:
        rows = _chosen(state[self.table], self.where)
        changed = {row.id: row._replace(grp=self.grp, val=row.val + self.more, tag=self.tag) for row in rows}
        state[self.table] = {**state[self.table], **changed}
        return len(changed)


@dataclass(frozen=True)
class Delete:
    table: str
    where: Where

    def sql(self) -> str:
        return f"DELETE FROM {self.table} WHERE {self.where.sql}"

    def run(self, state: State) -> Answer:
        rows = state[self.table]
        kept = {id: row for id, row in rows.items() if not self.where.has(row)}
        state[self.table] = kept
        return len(rows) - len(kept)


@dataclass(frozen=True)
class Import:
    """All its rows or none, if nobody in the whole table has their keys; what else is there stays."""

    table: str
    rows: tuple[Row, ...]

    def run(self, state: State) -> Answer:
        return _add(state, self.table, self.rows)


Statement = Read | Sum | Insert | Upsert | Update | Delete | Import


def _chosen(rows: Rows, where: Where, *, reverse: bool = False) -> list[Row]:
    return sorted((row for row in rows.values() if where.has(row)), reverse=reverse)


def _add(state: State, table: str, rows: Iterable[Row]) -> int:
    """Adds rows whose keys nobody has."""
    after = dict(state[table])
    units = {row.u for row in after.values() if row.u is not None}
    count = 0
    for row in rows:
        if row.id in after or row.u in units:
            raise Duplicate(f"row {row.id} of {table}")
        after[row.id] = row
        units |= set() if row.u is None else {row.u}
        count += 1
    state[table] = after
    return count
