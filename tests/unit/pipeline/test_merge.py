"""Random histories, flushed and cleaned at random, against a naive model of them, at every time."""

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table, TypeRef, replace
from tenure.kv.transaction import Transaction
from tenure.pipeline import merge, remote_handles
from tenure.storage.engine import REVISION_BYTES, ReadResult, Revisions
from tenure.table.columns import filled_with
from tenure.table.consistency import check_indexes
from tenure.table.lake import format
from tenure.table.lake.keep import Keep
from tenure.table.lake.past_files import FILES_MAX
from tenure.table.read import Source, at, rows, visible
from tests.seeds import seeds
from tests.unit.pipeline.lakes import Lake
from tests.unit.table.tables import ID, A, B, column, index, table
from tests.unit.table.trees import CONTEXT

NOTE = 4


def _table() -> Table:
    columns = [
        column(ID, "id", is_nullable=False),
        column(A, "a", TypeRef("numeric", (20, 2))),
        column(B, "b", TypeRef("text")),
    ]
    return table(index(2, "by_a", A), index(3, "by_b", B, unique=True), columns=columns)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path, _table())
    yield lake
    lake.close()


class History:
    """What was visible at each time at which something changed."""

    odd = Decimal("NaN")
    """A value that has no place in its column of a file."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.lake = lake
        self.rng = random.Random(seed)
        self.now: dict[int, dict[int, Any]] = {}
        self.seen: list[tuple[Timestamp, Table, dict[int, dict[int, Any]]]] = []

    def values(self, id: int) -> dict[int, Any]:
        some = [None, self.odd, Decimal(25 * id).scaleb(-2), Decimal(-100 * id).scaleb(-2)]
        known = {
            ID: id,
            A: self.rng.choice(some),
            B: None if self.rng.random() < 0.3 else f"{id}-{self.rng.random()}",
        }
        if NOTE in self.lake.layout.columns:
            known[NOTE] = f"note {id}"
        return {id: value for id, value in known.items() if id in self.lake.layout.columns}

    def write(self, count: int) -> None:
        """One transaction with some inserts, updates and deletes."""
        writer, layout = self.lake.writer(), self.lake.layout
        after = dict(self.now)

        def work(txn: Transaction) -> None:
            for _ in range(count):
                id = self.rng.randrange(60)
                if id not in after:
                    after[id] = self.values(id)
                    writer.insert(txn, after[id])
                    continue
                old = at(txn, layout, layout.key({ID: id}))
                assert old is not None
                if self.rng.random() < 0.3:
                    writer.delete(txn, old)
                    del after[id]
                else:
                    after[id] = self.values(id)
                    writer.update(txn, old, after[id])

        committed_at = self.lake.write(work)
        self.now = after
        self.seen.append((committed_at, self.lake.table, {id: dict(row) for id, row in after.items()}))

    def add_column(self) -> None:
        filled = filled_with(self.lake.layout.columns[B].type, "before")
        note = column(NOTE, "note", TypeRef("text"), filled=filled)
        self.lake.table = replace(
            self.lake.table, version=self.lake.table.version + 1, columns=(*self.lake.table.columns, note)
        )
        self.now = {id: {**row, NOTE: "before"} for id, row in self.now.items()}

    def drop_column(self) -> None:
        columns = tuple(each for each in self.lake.table.columns if each.id != A)
        indexes = tuple(each for each in self.lake.table.indexes if each.id != 2)
        self.lake.table = replace(
            self.lake.table, version=self.lake.table.version + 1, columns=columns, indexes=indexes
        )
        self.now = {id: {c: v for c, v in row.items() if c != A} for id, row in self.now.items()}

    def check(self) -> None:
        for committed_at, version, expected in self.seen:
            self.lake_agrees(self.lake.store.snapshot(committed_at), version, expected)
        txn = self.lake.store.begin()
        self.lake_agrees(txn, self.lake.table, self.now)
        txn.rollback()

    def lake_agrees(self, source: Source, version: Table, expected: dict[int, dict[int, Any]]) -> None:
        layout = self.lake._layouts.of(version)
        found = [visible(layout, row) for row in rows(source, layout)]
        assert [str(row) for row in found] == [str(expected[id]) for id in sorted(expected)]
        backwards = [visible(layout, row)[ID] for row in rows(source, layout, reverse=True)]
        assert backwards == sorted(expected, reverse=True)
        some = [visible(layout, row)[ID] for row in rows(source, layout, limit=3)]
        assert some == sorted(expected)[:3]
        if isinstance(source, Transaction):
            source.read_ahead([layout.key({ID: id}) for id in range(0, 60, 3)])
        for id in range(0, 60, 7):
            row = at(source, layout, layout.key({ID: id}))
            assert (row is not None) == (id in expected)
            if row is not None:
                assert str(visible(layout, row)) == str(expected[id])
        wrong = check_indexes(source, layout, CONTEXT)
        assert [each for each in wrong if "does not exist" not in each] == []  # a dropped index stays


@pytest.mark.invariant("merge-exact")
@pytest.mark.invariant("base-exact")
@pytest.mark.invariant("base-at")
@pytest.mark.invariant("file-exact")
@pytest.mark.parametrize("seed", seeds(6, few=2))
def test_reads_at_any_time_are_as_if_there_were_no_lake(
    lake: Lake, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(format, "GROUP_ROWS", 5)
    if seed == 1:  # a few revisions per range; keys with more are merged interval by interval
        monkeypatch.setattr(merge, "RANGE_BYTES", 3 * REVISION_BYTES)
    history = History(lake, seed)
    for step in range(24):
        history.write(history.rng.randrange(1, 12))
        if step == 8:
            history.add_column()
        if step == 16:
            history.drop_column()
        if history.rng.random() < 0.3:
            lake.flush_all()
        if history.rng.random() < 0.3:
            for each in lake.table.indexes:
                lake.clean(history.rng.choice([None, *[at for at, _, _ in history.seen]]), each.id)
        history.check()
    assert lake.manifest().past, "no history has been flushed"


@pytest.mark.invariant("merge-exact")
def test_a_key_with_a_long_history_of_wide_rows_is_merged_in_bounded_pieces(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, layout, width = lake.writer(), lake.layout, 1_500
    lake.write(lambda txn: [writer.insert(txn, {ID: id, A: None, B: f"{id}"}) for id in range(20)])
    lake.flush()
    texts: list[tuple[Timestamp, str]] = []
    for number in range(40):
        text = f"{number}".rjust(width)

        def work(txn: Transaction, text: str = text) -> None:
            old = at(txn, layout, layout.key({ID: 7}))
            assert old is not None
            writer.update(txn, old, {ID: 7, A: None, B: text})

        texts.append((lake.write(work), text))
    monkeypatch.setattr(merge, "RANGE_BYTES", 5 * (width + REVISION_BYTES))
    sizes: list[int] = []
    engine = remote_handles.opened(lake.place).store.engine
    read = engine.revisions

    def measured(query: Revisions) -> ReadResult:
        found = read(query)
        sizes.append(sum(len(each.value or b"") for each in found.revisions))
        return found

    monkeypatch.setattr(engine, "revisions", measured)
    lake.flush()
    lake.clean()
    assert sum(sizes) > 40 * width and max(sizes) <= 6 * width
    assert max(file.held_size for file in (*lake.manifest().live, *lake.manifest().past)) <= 6 * width
    for committed_at, text in texts:
        row = at(lake.store.snapshot(committed_at), layout, layout.key({ID: 7}))
        assert row is not None and visible(layout, row)[B] == text


@pytest.mark.invariant("merge-exact")
@pytest.mark.invariant("past-bounded")
def test_many_flushes_of_the_same_keys_leave_few_past_files(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(format, "GROUP_ROWS", 5)
    history = History(lake, seed=11)
    history.write(40)
    lake.flush()
    for _ in range(30):
        history.write(4)
        lake.flush()
        lake.clean()
        assert len(lake.manifest().past) <= FILES_MAX
    assert len(lake.manifest().past) <= 4, "files of a few rows stay in the first tier"
    history.check()


@pytest.mark.invariant("merge-exact")
@pytest.mark.invariant("keep-exact")
@pytest.mark.parametrize("seed", range(3))
def test_what_keep_does_not_need_goes_and_every_readable_time_stays_as_it_was(
    lake: Lake, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(format, "GROUP_ROWS", 5)
    history = History(lake, seed)
    for _ in range(16):
        history.write(10)
        lake.flush_all()
        lake.clean()
    times = [committed_at for committed_at, _, _ in history.seen]
    keep = Keep(times[9], (times[3] + seed,))  # at a commit; and at one, or after it and before the next
    before = _past_rows(lake)
    for _ in range(6):
        history.write(3)
        lake.flush(keep=keep)
    lake.clean()
    history.seen = [each for n, each in enumerate(history.seen) if n == 3 or each[0] >= keep.threshold]
    history.check()
    gone = before - _past_rows(lake)
    assert gone and not [row for row in gone if keep.needs(*row[1:])]


def _past_rows(lake: Lake) -> set[tuple[bytes, int, int]]:
    """Of each row its key, and when it began and ended."""
    rows: set[tuple[bytes, int, int]] = set()
    checked = lake.bases.checked
    for file in lake.manifest().past:
        table = checked.read_groups(file, range(len(checked.footer(file).firsts)))
        rows |= set(zip(*(table.column(name).to_pylist() for name in ("key", "at", "until")), strict=True))
    return rows
