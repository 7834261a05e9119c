"""Random histories of a table whose columns come and go, with a naive model of every revision."""

import random
from decimal import Decimal
from typing import Any, NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table, TypeRef, replace
from tenure.kv.transaction import Transaction
from tenure.table.columns import filled_with
from tenure.table.read import at
from tests.unit.pipeline.lakes import Lake
from tests.unit.table.tables import ID, A, B, column, table

COUNT, TAGS, NOTE = 4, 5, 6
KEYS = 60

Row = dict[int, Any]


def first_version() -> Table:
    columns = [
        column(ID, "id", is_nullable=False),
        column(A, "a", TypeRef("numeric", (20, 2))),
        column(B, "b", TypeRef("text")),
        column(COUNT, "count", TypeRef("int4")),
        column(TAGS, "tags", TypeRef("text", is_array=True)),
    ]
    return table(columns=columns)


class Event(NamedTuple):
    """A row as it was written, None where it was deleted."""

    at: Timestamp
    id: int
    row: Row | None


class History:
    def __init__(self, lake: Lake, seed: int) -> None:
        self.lake = lake
        self.rng = random.Random(seed)
        self.now: dict[int, Row] = {}
        self.events: list[Event] = []
        self.versions: list[tuple[Timestamp, Table]] = []
        self._writes = 0

    @property
    def times(self) -> list[Timestamp]:
        return sorted({event.at for event in self.events})

    def write(self, count: int) -> None:
        """One transaction of so many inserts, updates and deletes of as many rows."""
        ids = self.rng.sample(range(KEYS), count)
        after = {id: None if id in self.now and self.rng.random() < 0.4 else self._values(id) for id in ids}

        def work(txn: Transaction) -> None:
            writer, layout = self.lake.writer(), self.lake.layout
            for id, row in after.items():
                old = at(txn, layout, layout.key({ID: id}))
                if old is None:
                    assert row is not None
                    writer.insert(txn, row)
                elif row is None:
                    writer.delete(txn, old)
                else:
                    writer.update(txn, old, row)

        committed_at = self.lake.write(work)
        self.versions.append((committed_at, self.lake.table))
        for id, row in sorted(after.items()):
            self.events.append(Event(committed_at, id, row))
            if row is None:
                self.now.pop(id, None)
            else:
                self.now[id] = row

    def _values(self, id: int) -> Row:
        self._writes += 1
        odd = [None, Decimal("NaN"), Decimal(25 * id).scaleb(-2), Decimal(-100 * id).scaleb(-2)]
        values: Row = {
            ID: id,
            A: self.rng.choice(odd),
            B: self.rng.choice([None, "", f"{id}-{self._writes}"]),
            COUNT: self._writes,
            TAGS: self.rng.choice([None, (), ("a", None, "b,c")]),
            NOTE: f"note {id}",
        }
        return {id: value for id, value in values.items() if id in self.lake.layout.columns}

    def add_column(self) -> None:
        filled = filled_with(self.lake.layout.columns[B].type, "before")
        note = column(NOTE, "note", TypeRef("text"), filled=filled)
        self._become(columns=(*self.lake.table.columns, note))

    def drop_column(self) -> None:
        self._become(columns=tuple(each for each in self.lake.table.columns if each.id != A))

    def _become(self, **changed: Any) -> None:
        self.lake.table = replace(self.lake.table, version=self.lake.table.version + 1, **changed)

    # ── the model ──────────────────────────────────────────────────────────────────────────────

    def version(self, read_at: Timestamp) -> Table:
        """The table as the last write up to a time knew it."""
        return [each for at, each in self.versions if at <= read_at][-1]

    def visible(self, read_at: Timestamp) -> list[str]:
        rows = {event.id: event.row for event in self.events if event.at <= read_at}
        return [self._shown(row, read_at) for _, row in sorted(rows.items()) if row is not None]

    def changed(self, since_at: Timestamp, read_at: Timestamp) -> list[str]:
        last = {event.id: event for event in self.events if since_at < event.at <= read_at}
        return [self._told(event, read_at) for _, event in sorted(last.items())]

    def revisions(self, since_at: Timestamp, read_at: Timestamp) -> list[str]:
        found = sorted((event.id, event.at, event) for event in self.events if since_at < event.at <= read_at)
        told = []
        for place, (id, _, event) in enumerate(found):
            following = found[place + 1 : place + 2]
            until = following[0][1] if following and following[0][0] == id else None
            told.append(f"{self._told(event, read_at)} {until}")
        return told

    def _told(self, event: Event, read_at: Timestamp) -> str:
        if event.row is None:
            gone = {column.id: None for column in self.version(read_at).columns} | {ID: event.id}
            return f"{gone} {event.at} True"
        return f"{self._shown(event.row, read_at)} {event.at} False"

    def _shown(self, row: Row, read_at: Timestamp) -> str:
        filled = {NOTE: "before"}
        return str({each.id: row.get(each.id, filled.get(each.id)) for each in self.version(read_at).columns})
