"""Files of the lake that DuckDB holds: when they are loaded, used and let go."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tenure.kv.transaction import Transaction
from tenure.sql.duck import held_files
from tenure.sql.duck.held_files import BLOCK_ROWS, FileColumns, HeldFiles, _portions
from tenure.sql.duck.offload import Duck
from tenure.table.lake import format
from tenure.table.lake.format import GROUP_ROWS
from tenure.table.read import at, visible
from tests.unit.pipeline.lakes import Lake
from tests.unit.sql.duck.asked_tables import AskedTable, duck_table
from tests.unit.table.tables import ID, A, B


class HeldTable:
    """A table of forty rows in four files, and what DuckDB holds of it."""

    def __init__(self, lake: Lake, duck: Duck) -> None:
        self.lake, self.duck = lake, duck
        self.asked = AskedTable(lake, duck)
        self.lake.write(self._insert)
        self.files = lake.flush().live
        lake.bases.load()
        engine, _ = duck._engine_and_columns()
        self.database = engine._database
        assert engine.held_files is not None
        self.held: HeldFiles = engine.held_files

    def _insert(self, txn: Transaction) -> None:
        for id in range(40):
            self.lake.writer().insert(txn, {ID: id, A: Decimal(id), B: f"row {id}"})

    def change(self, txn: Transaction, *ids: int) -> None:
        for id in ids:
            row = at(txn, self.lake.layout, self.lake.layout.key({ID: id}))
            assert row is not None
            self.lake.writer().update(txn, row, {**visible(self.lake.layout, row), B: "changed"})

    def ask(self, *columns: int) -> None:
        assert self.asked.agree(self.lake.store.snapshot(), *columns)

    def settle(self) -> None:
        while self.held.step():
            pass

    @property
    def databases(self) -> list[str]:
        found = self.database.cursor().execute("SELECT database_name FROM duckdb_databases()").fetchall()
        return sorted(name for (name,) in found if name.startswith("h"))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldTable]:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 10)
    monkeypatch.setattr(format, "GROUP_ROWS", 5)
    lake = Lake(tmp_path, duck_table())
    duck = Duck(lake.store, lake=lake.files)
    yield HeldTable(lake, duck)
    duck.close()
    lake.close()


def test_files_are_held_from_their_second_query_on(held: HeldTable) -> None:
    held.ask(ID)
    held.settle()
    assert held.databases == []
    held.ask(ID)
    held.settle()
    assert held.databases == ["h1", "h2", "h3", "h4"]
    assert held.held.names == {file.name for file in held.files}
    held.ask(ID)
    assert not held.held.step(), "nothing is missing"


def test_a_query_of_held_files_reads_no_file(held: HeldTable) -> None:
    for _ in range(2):
        held.ask(ID, B)
    held.settle()
    expected = held.asked.by_rows(held.lake.store.snapshot(), B)
    held.lake.files.delete([file.name for file in held.files])
    assert held.asked.by_duck(held.lake.store.snapshot(), B) == expected


def test_hidden_rows_own_writes_and_the_past_are_those_of_the_files(held: HeldTable) -> None:
    for _ in range(2):
        held.ask(ID, B)
    held.settle()
    before = held.lake.store.snapshot()
    held.lake.write(lambda txn: held.change(txn, 0, 9, 15, 39))
    assert held.asked.agree(before, ID, B)
    held.ask(ID, B)
    assert held.asked.agree_joined(held.lake.store.snapshot(), ID, B)
    assert held.asked.agree_first(held.lake.store.snapshot(), 17)
    txn = held.lake.store.begin()
    held.change(txn, 20)
    assert held.asked.agree(txn, ID, B)
    txn.rollback()
    held.lake.flush()
    held.lake.bases.load()
    held.ask(ID, B)
    assert held.asked.agree(before, ID, B)


def test_a_column_that_is_not_held_is_read_from_the_file_and_held_from_then_on(held: HeldTable) -> None:
    for _ in range(2):
        held.ask(ID)
    held.settle()
    held.ask(A, B)
    held.settle()
    assert held.databases == ["h5", "h6", "h7", "h8"], "those with one column were replaced"
    held.ask(ID, A, B)
    assert not held.held.step()


def test_a_file_that_is_replaced_stays_while_a_query_reads_it(held: HeldTable) -> None:
    wanted = [FileColumns(held.files[0], frozenset(("c1",)))]
    for _ in range(2):
        held.held.give_back(held.held.take(wanted))
    held.settle()
    taken = held.held.take(wanted)
    assert taken == {held.files[0].name: "h1.f"}
    held.held.take([FileColumns(held.files[0], frozenset(("c2",)))])
    held.settle()
    assert held.databases == ["h1", "h2"]
    held.held.give_back(taken)
    held.settle()
    assert held.databases == ["h2"]


def test_files_without_a_query_for_long_are_let_go(held: HeldTable, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        held.ask(ID)
    held.settle()
    monkeypatch.setattr(held_files, "USED_SECONDS", -1.0)
    held.settle()
    assert held.databases == []
    held.ask(ID)


def test_a_file_without_room_is_tried_once_and_again_when_there_is_room(held: HeldTable) -> None:
    held.held._bytes_max = 1
    held.held.take([FileColumns(held.files[0], frozenset(("c1",)))])
    held.held.take([FileColumns(held.files[0], frozenset(("c1",)))])
    assert held.held.step()
    assert not held.held.step()
    assert held.databases == []
    held.held._bytes_max = 1 << 20
    held.held._gone.append("nothing")
    held.database.execute("ATTACH ':memory:' AS nothing")
    assert held.held.step()
    assert held.databases == ["h2"]


def test_a_file_that_is_gone_is_not_held(held: HeldTable) -> None:
    for _ in range(2):
        held.held.take([FileColumns(held.files[0], frozenset(("c1",)))])
    held.lake.files.delete([held.files[0].name])
    held.settle()
    assert held.databases == []


@pytest.mark.invariant("held-checked")
def test_a_damaged_file_is_not_held(held: HeldTable) -> None:
    file = held.files[0]
    for _ in range(2):
        held.ask(ID)
    path = Path(held.lake.files.duck_path(file.name))
    right = path.read_bytes()
    chunks = held.lake.bases.checked.footer(file).chunks
    (number, *_) = [each for each in range(len(chunks.sums)) if chunks.name(each)[0] == "c1"]
    damaged = bytearray(right)
    damaged[chunks.starts[number] + chunks.sizes[number] - 1] ^= 4
    path.write_bytes(damaged)
    held.settle()
    assert held.held.names == {each.name for each in held.files[1:]}
    path.write_bytes(right)
    held.ask(ID)


def test_what_is_inserted_at_once_fills_whole_blocks() -> None:
    in_block = BLOCK_ROWS // GROUP_ROWS
    found = list(_portions([GROUP_ROWS] * 3 * in_block + [5], columns=15))
    assert [len(each) for each in found] == [2 * in_block, in_block + 1]
    assert list(_portions([7], columns=1_000)) == [[0]]
    assert list(_portions([], columns=1)) == []


def test_a_file_of_several_portions_is_held_whole(held: HeldTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_files, "BLOCK_ROWS", 1)
    monkeypatch.setattr(held_files, "LOADED_BYTES_MAX", 0)
    for _ in range(2):
        held.ask(ID, B)
    held.settle()
    assert held.held.names == {each.name for each in held.files}
    held.ask(ID, B)
