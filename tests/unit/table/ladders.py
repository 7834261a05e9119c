"""Schema changes as the versions they walk through, with what is done to the rows in between.

Each ladder goes all the way: an element is added, stays, and goes again. `filled` are the indexes
that are complete from that stage on although they are not public yet, or no longer.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import Check, Column, ElementState, Goal, Index, Table, replace
from tenure.expr.types.type_names import type_of
from tenure.kv.snapshot import Snapshot
from tenure.table.backfill import FillBatch, Transact, backfill_column, backfill_index, remove_index
from tenure.table.columns import filled_with
from tenure.table.rows import Layout, Layouts
from tests.unit.table.tables import DELETE_ONLY, INT, PUBLIC, WRITE_ONLY, A, B, column, index, table
from tests.unit.table.trees import CONTEXT, above, column_value, constant, row_id

C = 4
LIFE = (
    (DELETE_ONLY, Goal.PUBLIC),
    (WRITE_ONLY, Goal.PUBLIC),
    (PUBLIC, Goal.PUBLIC),
    (WRITE_ONLY, Goal.ABSENT),
    (DELETE_ONLY, Goal.ABSENT),
)
"""Between absent and absent."""


class Stage(NamedTuple):
    table: Table
    columns_to_fill: tuple[int, ...] = ()
    indexes_to_fill: tuple[int, ...] = ()
    indexes_to_remove: tuple[int, ...] = ()
    filled: tuple[int, ...] = ()
    """Write_only indexes that are complete, once the above is done."""


def ladder(name: str) -> list[Stage]:
    stages = LADDERS[name]()
    return [
        stage._replace(table=replace(stage.table, version=number)) for number, stage in enumerate(stages, 1)
    ]


def index_life(added: Index) -> list[Stage]:
    plain = table(index(2, "t_b", B))
    stages = [Stage(plain)]
    for state, goal in LIFE:
        version = replace(plain, indexes=(*plain.indexes, replace(added, state=state, goal=goal)))
        stages.append(_index_stage(version, state, goal, added.id))
    return [*stages, Stage(plain)]


def _index_stage(version: Table, state: ElementState, goal: Goal, *ids: int) -> Stage:
    if state is DELETE_ONLY:
        return Stage(version, indexes_to_remove=ids if goal is Goal.ABSENT else ())
    return Stage(
        version, indexes_to_fill=ids if goal is Goal.PUBLIC and state is WRITE_ONLY else (), filled=ids
    )


def column_life(added: Column, *, is_filled: bool = False) -> list[Stage]:
    """With an index on the column, in the same states."""
    plain = table(index(2, "t_b", B))
    stages = [Stage(plain)]
    for state, goal in LIFE:
        version = replace(
            plain,
            columns=(*plain.columns, replace(added, state=state, goal=goal)),
            indexes=(*plain.indexes, index(3, "t_c", C, state=state, goal=goal)),
        )
        stage = _index_stage(version, state, goal, 3)
        stages.append(stage._replace(columns_to_fill=(C,) if is_filled and stage.indexes_to_fill else ()))
    return [*stages, Stage(plain)]


def type_life() -> list[Stage]:
    """Column c takes over from column a, and index 3 from index 2."""
    old, new = index(2, "t_a", A, unique=True), index(3, "t_a_new", C, unique=True)
    plain = table(old)
    stages = [Stage(plain)]
    for state in (DELETE_ONLY, WRITE_ONLY):
        coming = column(C, "c", computed=column_value(A), replaces=A, state=state)
        version = replace(
            plain, columns=(*plain.columns, coming), indexes=(*plain.indexes, replace(new, state=state))
        )
        is_filling = state is WRITE_ONLY
        fill = (3,) if is_filling else ()
        stages.append(Stage(version, (C,) if is_filling else (), fill, (), fill))
    id, a, b = plain.columns
    taken_over = column(C, "a")
    for state in (WRITE_ONLY, DELETE_ONLY):
        going = replace(a, name="a_old", computed=column_value(C), state=state, goal=Goal.ABSENT)
        version = replace(
            plain,
            columns=(id, going, b, taken_over),
            indexes=(plain.indexes[0], replace(old, state=state, goal=Goal.ABSENT), new),
        )
        is_going = state is DELETE_ONLY
        stages.append(
            Stage(version, indexes_to_remove=(2,) if is_going else (), filled=() if is_going else (2,))
        )
    return [*stages, Stage(replace(plain, columns=(id, b, taken_over), indexes=(plain.indexes[0], new)))]


def key_life() -> list[Stage]:
    """The primary key changes from id to a; index 4, into the new one, takes over from index 2."""
    first, second = index(1, "t_pkey", 1, unique=True), index(2, "t_b", B)
    third = index(3, "t_pkey_new", A, unique=True, primary=3)
    fourth = index(4, "t_b_new", B, primary=3)
    id, a, b = table().columns
    plain = replace(table(second), columns=(id, replace(a, is_nullable=False), b))
    stages = [Stage(plain)]
    for state in (DELETE_ONLY, WRITE_ONLY):
        coming = (replace(third, state=state), replace(fourth, state=state))
        fill = (3, 4) if state is WRITE_ONLY else ()
        stages.append(Stage(replace(plain, indexes=(*plain.indexes, *coming)), (), fill, (), fill))
    for state in (WRITE_ONLY, DELETE_ONLY):
        going = (
            replace(first, state=state, goal=Goal.ABSENT),
            replace(second, state=state, goal=Goal.ABSENT),
        )
        gone = (1, 2) if state is DELETE_ONLY else ()
        version = replace(plain, primary=3, indexes=(*going, third, fourth))
        stages.append(Stage(version, indexes_to_remove=gone, filled=() if gone else (1, 2)))
    return [*stages, Stage(replace(plain, primary=3, indexes=(third, fourth)))]


def check_life() -> list[Stage]:
    plain = table(index(2, "t_b", B))
    check = Check(1, "a_small", above(A, -1))
    lives = [replace(plain, checks=(replace(check, state=state, goal=goal),)) for state, goal in LIFE]
    return [Stage(each) for each in (plain, *lives, plain)]


LADDERS = {
    "index": lambda: index_life(index(3, "t_a", A)),
    "descending index": lambda: index_life(index(3, "t_a", A, B, descending=[A])),
    "partial index": lambda: index_life(index(3, "t_a", A, predicate=above(B, 1))),
    "unique index": lambda: index_life(index(3, "t_a_key", A, unique=True)),
    "partial unique index": lambda: index_life(index(3, "t_a", A, unique=True, predicate=above(B, 1))),
    "column": lambda: column_life(column(C, "c")),
    "column with a constant": lambda: column_life(
        column(C, "c", default=constant(5), filled=filled_with(type_of(INT), 5), is_nullable=False)
    ),
    "generated column": lambda: column_life(column(C, "c", generated=column_value(A)), is_filled=True),
    "column with a default per row": lambda: column_life(
        column(C, "c", default=row_id(), is_nullable=False), is_filled=True
    ),
    "type": type_life,
    "primary key": key_life,
    "check": check_life,
}


def steps(transact: Transact, snapshot: Snapshot, layouts: Layouts, stage: Stage) -> Iterator[FillBatch]:
    """Does what the stage needs before the next version may come, a batch of one row at a time."""
    layout = layouts.of(stage.table)
    for id in stage.columns_to_fill:
        run = partial(backfill_column, transact, snapshot, layout, id, _no_others, CONTEXT)
        yield from _batches(run)
    for id in stage.indexes_to_fill:
        yield from _batches(partial(backfill_index, transact, snapshot, layout, id, CONTEXT))
    for id in stage.indexes_to_remove:
        yield from _batches(partial(remove_index, transact, layout.keyspace, stage.table.id, id))


def _batches(run: Callable[..., FillBatch]) -> Iterator[FillBatch]:
    resume: bytes | None = b""
    while resume is not None:
        batch = run(resume=resume, rows_max=1)
        yield batch
        resume = batch.resume


def _no_others(id: int) -> Layout:
    raise AssertionError("these tables have no foreign keys")
