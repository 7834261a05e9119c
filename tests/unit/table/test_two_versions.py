"""Two versions of a table in use at a time, at every step of every kind of change.

Writers of adjacent versions work on the same rows. After each commit the indexes are compared with
the rows, as either version sees them.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from itertools import count, product
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.base.errors import CheckViolation, NotNullViolation, UniqueViolation
from tenure.catalog.descriptors.definitions import replace
from tenure.expr.types.datatype import Datum
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.consistency import check_indexes
from tenure.table.read import Source, find, rows, visible
from tenure.table.rows import Layout, Layouts, Row
from tenure.table.write import TableWriter
from tests.unit.table.ladders import LADDERS, Stage, ladder, steps
from tests.unit.table.tables import ID
from tests.unit.table.trees import CONTEXT

_ids = count(1_000)


class Write(NamedTuple):
    is_newer: bool
    """Whether the writer is on the newer of the two versions."""
    kind: str
    id: int
    value: int | None = None


class World:
    """One table in one store, the rows a dict says it has, and two versions of it."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.layouts = Layouts(store.keyspace)
        self.model: dict[int, dict[str, Datum]] = {}
        table_id = next(_ids)
        self.stages = [_renumbered(stage, table_id) for stage in ladder(name)]
        self.filled: tuple[int, ...] = ()

    def write(self, number: int, write: Write, txn: Transaction | None = None) -> None:
        """By a writer of the stage, or of the one after it; in a transaction of its own, unless given."""
        layout = self.layouts.of(self.stages[number + write.is_newer].table)
        given = {"insert": write.id, "move": write.value}.get(write.kind)
        both = [self.layouts.of(stage.table) for stage in self.stages[number : number + 2]]
        if given in self.model and not all(map(_tells_ids_apart, both)):
            return  # it may be there twice now, which the model does not know
        try:
            if txn is None:
                self.store.transact(lambda txn: _apply(txn, layout, write))
            else:
                _apply(txn, layout, write)
        except (UniqueViolation, CheckViolation, NotNullViolation):
            return
        _apply_to_model(self.model, write)

    def check(self, number: int, source: Source | None = None) -> None:
        """As either version sees it. What is complete in one is complete in the other."""
        both = [self.stages[number], self.stages[number + 1]]
        filled = set(both[0].filled) & set(both[1].filled) & set(self.filled)
        source = source or self.store.snapshot()
        for stage in both:
            layout = self.layouts.of(stage.table)
            assert check_indexes(source, layout, CONTEXT, filled=filled) == []
            seen = {row.values[ID]: _named(layout, row) for row in rows(source, layout)}
            assert seen.keys() == self.model.keys()
            if any(each.generated and each.id in layout.public for each in stage.table.columns):
                assert all(row["c"] == row["a"] for row in seen.values()) or not self.filled
            for id, model in self.model.items():
                assert {name: seen[id][name] for name in model} == model

    def finish(self, number: int) -> Iterator[None]:
        """What a stage needs before the next version comes, batch by batch."""
        stage = self.stages[number]
        yield from (None for _ in steps(self.store.transact, self.store.snapshot(), self.layouts, stage))
        self.filled = stage.filled


WRITES = [
    ("insert", 3, 7),
    ("set a", 1, 7),
    ("set a", 1, None),
    ("set b", 1, 5),
    ("move", 1, 4),
    ("delete", 1, None),
]
PAIRS = [(name, number) for name in LADDERS for number in range(len(ladder(name)) - 1)]
FILLING = [
    (name, number)
    for name in LADDERS
    for number, stage in enumerate(ladder(name))
    if stage.indexes_to_fill or stage.columns_to_fill
]


@pytest.mark.invariant("write-states")
@pytest.mark.parametrize(("name", "number"), PAIRS, ids=lambda value: str(value))
def test_any_two_writes_of_adjacent_versions_leave_the_indexes_right(
    store: Store, name: str, number: int
) -> None:
    world = World(store, name)
    _settle(world, number)
    settled = deepcopy(world.model)
    every = [Write(is_newer, *write) for is_newer in (False, True) for write in WRITES]
    for writes in [*product(every), *product(every, every)]:
        txn = store.begin()
        for write in writes:
            world.write(number, write, txn)
        world.check(number, txn)
        txn.rollback()
        world.model = deepcopy(settled)


@pytest.mark.invariant("backfill-whole")
@pytest.mark.parametrize(("name", "number"), FILLING, ids=lambda value: str(value))
def test_any_two_writes_after_the_backfills_read_time_leave_it_whole(
    store: Store, name: str, number: int
) -> None:
    world = World(store, name)
    _settle(world, number - 1)
    world.write(number - 1, Write(False, "insert", 5, 0))
    settled = deepcopy(world.model)
    at_b = store.snapshot()
    every = [Write(True, *write) for write in [*WRITES, ("insert", 3, 0), ("delete", 5, None)]]
    for writes in [*product(every), *product(every, every)]:
        txn = store.begin()
        for write in writes:
            world.write(number - 1, write, txn)
        stage = world.stages[number]
        try:
            list(steps(partial(_within, txn), at_b, world.layouts, stage))
            layout = world.layouts.of(stage.table)
            assert check_indexes(txn, layout, CONTEXT, filled=stage.filled) == []
        except UniqueViolation:
            assert _has_equals(world, stage), f"no two rows are equal after {writes}"
        txn.rollback()
        world.model = deepcopy(settled)


def _within(txn: Transaction, run: Callable[[Transaction], int]) -> int:
    """A batch as part of a transaction that is rolled back later."""
    return run(txn)


def _has_equals(world: World, stage: Stage) -> bool:
    unique = any(index.is_unique for index in stage.table.indexes if index.id in stage.indexes_to_fill)
    values = [row["a"] for row in world.model.values() if row["a"] is not None]
    return unique and len(set(values)) < len(values)


def _settle(world: World, number: int) -> None:
    """Walks up to the pair, with a row written at each step by both of its versions."""
    world.write(0, Write(False, "insert", 1, 0))
    world.write(0, Write(False, "insert", 2, 1))
    for each in range(number):
        world.write(each, Write(False, "insert", 10 + 2 * each, 20 + 2 * each))
        world.write(each, Write(True, "insert", 11 + 2 * each, 21 + 2 * each))
        world.write(each, Write(False, "set b", 1, each))
        world.write(each, Write(True, "set b", 2, each))
        list(world.finish(each + 1))
    world.check(number)


writes = st.builds(
    Write,
    st.booleans(),
    st.sampled_from(["insert", "set a", "set b", "move", "delete"]),
    st.integers(0, 4),
    st.none() | st.integers(0, 4),
)


@pytest.mark.invariant("write-states")
@pytest.mark.invariant("backfill-whole")
@given(st.data(), st.sampled_from(sorted(LADDERS)))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_writes_at_every_step_of_a_change_and_between_batches_leave_the_indexes_right(
    data: st.DataObject, name: str
) -> None:
    engine = SqliteEngine(MEMORY, env := ManualEnv())
    world = World(Store(engine, env), name)
    try:
        for number in range(len(world.stages) - 1):
            for write in data.draw(st.lists(writes, max_size=4)):
                world.write(number, write)
                world.check(number)
            # The newer version is everywhere; now its backfill runs among its writers.
            for _ in world.finish(number + 1):
                for write in data.draw(st.lists(writes, max_size=2)):
                    world.write(number, write._replace(is_newer=True))
        world.check(len(world.stages) - 2)
    except UniqueViolation:
        # Rows that were equal before the index was enforced: the change fails, and goes back.
        assert _has_equals(world, world.stages[number + 1])
    finally:
        engine.close()


def _renumbered(stage: Stage, id: int) -> Stage:
    return stage._replace(table=replace(stage.table, id=id))


def _tells_ids_apart(layout: Layout) -> bool:
    return any(
        each.is_unique and each.is_written and each.columns == (ID,) for each in layout.indexes.values()
    )


def _apply(txn: Transaction, layout: Layout, write: Write) -> None:
    writer = TableWriter(layout, lambda id: layout, CONTEXT)
    named = {column.name: column.id for column in layout.table.columns if column.id in layout.public}
    if write.kind == "insert":
        writer.insert(txn, {ID: write.id, named["a"]: write.value, named["b"]: write.id})
    else:
        for row in list(find(txn, layout, (ID,), (write.id,))):
            match write.kind:
                case "delete":
                    writer.delete(txn, row)
                case "move":
                    writer.update(txn, row, {ID: write.value})
                case _:
                    writer.update(txn, row, {named[write.kind[-1]]: write.value})
    writer.finish(txn)


def _apply_to_model(model: dict[int, dict[str, Datum]], write: Write) -> None:
    if write.kind == "insert":
        model[write.id] = {"id": write.id, "a": write.value, "b": write.id}
    elif write.id in model and write.kind == "delete":
        del model[write.id]
    elif write.id in model and write.kind == "move":
        assert write.value is not None
        model[write.value] = model.pop(write.id) | {"id": write.value}
    elif write.id in model:
        model[write.id][write.kind[-1]] = write.value


def _named(layout: Layout, row: Row) -> dict[str, Datum]:
    return {layout.columns[id].name: value for id, value in visible(layout, row).items()}
