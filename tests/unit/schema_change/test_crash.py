"""The process ends at every commit of a change, right before or right after it lands.

Another node then finishes the change or takes it back. Either way: indexes and rows agree, names
and descriptors agree, nothing is left over, and the change is there whole or not at all.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tenure.base.errors import TenureError
from tenure.base.settings import DEFINITIONS, LEASE_HOLDER_GRACE, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.changes.table_changes import (
    AddColumn,
    AddIndex,
    AlterPrimaryKey,
    AlterType,
    DropConstraint,
    NamedKeyColumn,
    SetNotNull,
    alter,
)
from tenure.catalog.descriptors.definitions import Action, DescriptorState, Table, TypeRef, replace
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.expr.tree.build import cast, column
from tenure.expr.tree.expressions import to_stored
from tenure.expr.types.type_names import type_of
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.read import get
from tests.unit.schema_change.clusters import Cluster, Crashed, SchemaNode
from tests.unit.schema_change.declared import (
    A,
    B,
    add_check,
    add_column,
    add_foreign_key,
    add_index,
    add_serial,
    create,
    created,
    drop,
    drop_column,
    drop_index,
    inconsistent_names,
    make_view,
    rename,
    table_of,
)
from tests.unit.schema_change.stepping import SteppedEnv
from tests.unit.table.trees import INT, column_value

BRISK = Settings(DEFINITIONS, {LIVENESS_TTL: 4.0, LIVENESS_HEARTBEAT: 1.0, LEASE_HOLDER_GRACE: 1.0})
COMMITS_MAX = 60
"""More than any change takes."""

Work = Callable[[SchemaNode, CatalogUse, dict[str, int]], object]


class Change(NamedTuple):
    name: str
    work: Work
    is_refused: bool = False
    """Whether it fails for a reason of its own, so that its way is one back."""


def _index(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_index(use, ids["t"], A)


def _index_of_equal_rows(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_index(use, ids["t"], B, name="t_b", unique=True)


def _rows_and_index(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    node.insert(use, ids["t"], 10, 10, 10)
    add_index(use, ids["t"], A, unique=True)
    add_check(use, ids["t"], B, name="t_check2")


def _rows_and_index_of_equal_rows(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    node.insert(use, ids["t"], 10, 1, 10)
    add_index(use, ids["t"], A, unique=True)


def _rows_drop_and_rename(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    node.insert(use, ids["t"], 10, 10, 10)
    add_index(use, ids["t"], A)
    drop_index(use, ids["t"], "t_old")


def _column(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_column(use, ids["t"], "c", default=7)


def _drop_index(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    drop_index(use, ids["t"], "t_old")


def _drop_column(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    drop_column(use, ids["u"], "b")


def _check_in_the_way(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_check(use, ids["t"], A, above_value=100, name="t_check2")


def _foreign_key(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_foreign_key(use, ids["u"], ids["t"])


def _foreign_key_in_the_way(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_foreign_key(use, ids["t"], ids["u"], column=B)


def _new_table_with_rows(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    made = create(node, use, "made")
    add_foreign_key(use, made, ids["t"])
    node.insert(use, made, 1, 1, 1)


def _rename(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    rename(use, ids["t"], "renamed")


def _drop(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    drop(use, ids["u"])


def _not_null(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    alter(use.draft, use, ids["t"], SetNotNull("a"))


def _rows_and_no_check(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    alter(use.draft, use, ids["u"], DropConstraint("u_check"))
    node.insert(use, ids["u"], 10, -10, 10)


def _no_check_and_index_refused(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    alter(use.draft, use, ids["t"], DropConstraint("t_check"))
    alter(use.draft, use, ids["t"], AddIndex("t_b2", (NamedKeyColumn("b"),), is_unique=True))


def _several_tables(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_index(use, ids["t"], A, name="t_a")
    add_column(use, ids["u"], "c", default=3)
    rename(use, ids["u"], "v")


def _several_tables_refused(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_column(use, ids["u"], "c", default=3)
    add_index(use, ids["t"], B, name="t_b2", unique=True)
    rename(use, ids["u"], "v")


def _primary_key(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    alter(use.draft, use, ids["t"], AlterPrimaryKey("t_pkey", (NamedKeyColumn("a"),)))


def _primary_key_of_equal_rows(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    alter(use.draft, use, ids["t"], AlterPrimaryKey("t_pkey", (NamedKeyColumn("b"),)))


def _type(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    new, text = table_of(use, ids["t"]).next_column, type_of(TypeRef("text"))
    there = to_stored(cast(column(B, INT), text).node, "")
    back = to_stored(cast(column(new, text), INT).node, "")
    alter(use.draft, use, ids["t"], AlterType("b", TypeRef("text"), there, back))


def _serial(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_serial(node, use, ids["t"])


def _serial_in_the_way(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    add_serial(node, use, ids["t"])
    add_index(use, ids["t"], B, name="t_b2", unique=True)


def _generated(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    alter(use.draft, use, ids["t"], AddColumn("g", TypeRef("int8"), generated=column_value(A)))


def _view_and_rows(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    make_view(node, use, ids["t"], A)
    add_index(use, ids["t"], A)
    node.insert(use, ids["t"], 10, 10, 10)


def _view_and_index_refused(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    make_view(node, use, ids["t"], A)
    add_index(use, ids["t"], B, name="t_b2", unique=True)


def _delete(node: SchemaNode, use: CatalogUse, id: int, key: int) -> None:
    with node.writer(use, id) as writer:
        row = get(use.txn, writer.layout, [key])
        assert row is not None
        writer.delete(use.txn, row)


def _clean_up_and_unique_index(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    _delete(node, use, ids["t"], 2)
    node.insert(use, ids["t"], 10, 10, 10)
    add_index(use, ids["t"], B, name="t_b2", unique=True)


def _clean_up_and_foreign_key(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    _delete(node, use, ids["t"], 2)
    node.insert(use, ids["u"], 10, 10, 10)
    node.insert(use, ids["t"], 10, 10, 10)
    add_foreign_key(use, ids["t"], ids["u"], on_delete=Action.CASCADE)


def _foreign_key_to_a_removed_row(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    _delete(node, use, ids["t"], 1)
    add_foreign_key(use, ids["u"], ids["t"], on_delete=Action.CASCADE)


def _drop_unique_index_and_equal_row(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    drop_index(use, ids["u"], "u_one")
    node.insert(use, ids["u"], 10, 1, 10)


def _swap_names(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    rename(use, ids["t"], "aside")
    rename(use, ids["u"], "t")
    rename(use, ids["t"], "u")
    node.insert(use, ids["t"], 10, 10, 10)


def _drop_and_make_again(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    drop(use, ids["u"])
    made = create(node, use, "u")
    add_foreign_key(use, made, ids["t"])
    node.insert(use, made, 1, 1, 1)


def _swap_names_refused(node: SchemaNode, use: CatalogUse, ids: dict[str, int]) -> None:
    _swap_names(node, use, ids)
    add_index(use, ids["t"], B, name="t_b2", unique=True)


CHANGES = (
    Change("swap names", _swap_names),
    Change("swap names refused", _swap_names_refused, is_refused=True),
    Change("drop and make again", _drop_and_make_again),
    Change("clean up and unique index", _clean_up_and_unique_index),
    Change("clean up and foreign key", _clean_up_and_foreign_key),
    Change("foreign key to a removed row refused", _foreign_key_to_a_removed_row, is_refused=True),
    Change("drop unique index, equal row", _drop_unique_index_and_equal_row),
    Change("serial column", _serial),
    Change("serial column refused", _serial_in_the_way, is_refused=True),
    Change("generated column", _generated),
    Change("view and rows", _view_and_rows),
    Change("view refused", _view_and_index_refused, is_refused=True),
    Change("primary key", _primary_key),
    Change("primary key refused", _primary_key_of_equal_rows, is_refused=True),
    Change("type", _type),
    Change("not null", _not_null),
    Change("rows and drop check", _rows_and_no_check),
    Change("drop check, unique index refused", _no_check_and_index_refused, is_refused=True),
    Change("several tables", _several_tables),
    Change("several tables refused", _several_tables_refused, is_refused=True),
    Change("index", _index),
    Change("unique index refused", _index_of_equal_rows, is_refused=True),
    Change("rows and index", _rows_and_index),
    Change("rows and index refused", _rows_and_index_of_equal_rows, is_refused=True),
    Change("rows, index, drop of another", _rows_drop_and_rename),
    Change("column", _column),
    Change("drop index", _drop_index),
    Change("drop column", _drop_column),
    Change("check refused", _check_in_the_way, is_refused=True),
    Change("foreign key", _foreign_key),
    Change("foreign key refused", _foreign_key_in_the_way, is_refused=True),
    Change("new table with rows", _new_table_with_rows),
    Change("rename", _rename),
    Change("drop table", _drop),
)


class Scene:
    """Two nodes, two tables with rows, and a picture of it all before the change."""

    def __init__(self) -> None:
        env = SteppedEnv()
        self.engine = SqliteEngine(MEMORY, env)
        self.cluster = Cluster(self.engine, env, settings=BRISK)
        self.victim, self.survivor = self.cluster.add(), self.cluster.add()
        self.ids = {name: created(self.survivor, name) for name in ("t", "u")}
        self.survivor.run(lambda use: add_index(use, self.ids["t"], B, name="t_old"))
        self.survivor.run(lambda use: add_index(use, self.ids["u"], A, name="u_one", unique=True))
        for name, id in self.ids.items():
            self.survivor.run(lambda use, id=id, name=name: add_check(use, id, name=f"{name}_check"))  # type: ignore[misc]
        self.survivor.put_rows(self.ids["t"], (1, 1, 5), (2, 2, 5))
        self.survivor.put_rows(self.ids["u"], (1, 1, 1))
        self.cluster.settle()
        self.before = self.picture()

    def picture(self) -> dict[str, object]:
        """Tables, names and rows, without what a change that was taken back may leave: its numbers."""
        node = self.survivor
        tables = {id: node.table(id) for id in self.ids.values()}
        known = sorted({id for name, id in node.names().items() if id > 101})
        return {
            "tables": [_plain(table) for table in tables.values()],
            "names": {name: id for name, id in node.names().items() if id in known},
            "rows": {id: _rows(node, id) for id in known if isinstance(node.stored(id), Table)},
        }

    def run(self, change: Change) -> None:
        self.victim.run(lambda use: change.work(self.victim, use, self.ids))

    def settle(self) -> None:
        """Until the survivor has nothing left to do."""
        self.cluster.until(lambda: not self.survivor.open_jobs(), seconds=60)
        for table in ("t", "u"):
            id = self.ids[table]
            if self.survivor.table(id).state is not DescriptorState.DROPPED:
                self.survivor.run(lambda use, id=id: add_column(use, id, "later"))  # type: ignore[misc]
                self.survivor.run(lambda use, id=id: drop_column(use, id, "later"))  # type: ignore[misc]
        self.cluster.until(lambda: not self.survivor.open_jobs(), seconds=60)

    def wrong(self) -> Iterator[str]:
        node = self.survivor
        yield from inconsistent_names(node)
        for each in node.catalog.list(node.store.snapshot()):
            if isinstance(each, Table) and each.state is not DescriptorState.DROPPED:
                yield from node.wrong_indexes(each.id)
                yield from [f"job {each.job} of {each.name}"] if each.job else []
        yield from [f"wait {wait}" for wait in node.waits.list(node.store.snapshot())]
        own = node.liveness.session().id
        if self.victim.wire.is_dead:
            yield from [f"row of {row.session}" for row in node.lease_rows() if row.session != own]

    def close(self) -> None:
        self.engine.close()


def _rows(node: SchemaNode, id: int) -> list[tuple[object, ...]]:
    """Without the values of sequences: whoever takes the work over has others."""
    serial = [each.default is not None and bool(each.default.sequences) for each in node.table(id).columns]
    return [
        tuple(value for value, is_left_out in zip(row, serial, strict=False) if not is_left_out)
        for row in node.shown(id)
    ]


def _plain(table: Table) -> Table:
    table = replace(table, version=1, modified_at=ZERO_AT, logical=0, row=0)
    return replace(table, next_column=99, next_index=99, next_constraint=99)


def outcome(change: Change) -> dict[str, object]:
    """What the change comes to when nothing happens."""
    scene = Scene()
    try:
        try:
            scene.run(change)
        except TenureError:
            assert change.is_refused
        else:
            assert not change.is_refused
        scene.settle()
        assert list(scene.wrong()) == []
        return scene.picture()
    finally:
        scene.close()


@pytest.mark.parametrize(
    "has_landed", [False, pytest.param(True, marks=pytest.mark.longer)], ids=["before", "after"]
)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
@pytest.mark.invariant("ddl-atomic")
def test_a_crash_at_any_commit_leaves_the_change_whole_or_not_at_all(
    change: Change, has_landed: bool
) -> None:
    """Right after a commit the store is mostly as right before the next one: the longer form tries both."""
    whole = outcome(change)
    seen: list[str] = []
    for number in range(1, COMMITS_MAX):
        scene = Scene()
        scene.victim.wire.crash_at(number, has_landed=has_landed)
        try:
            scene.run(change)
        except Crashed:
            pass
        except TenureError:
            assert change.is_refused
        is_over = not scene.victim.wire.is_dead
        if not is_over:
            scene.settle()
            assert list(scene.wrong()) == [], f"after a crash at commit {number}"
            picture = scene.picture()
            assert picture in (scene.before, whole), f"half of it after a crash at commit {number}"
            seen.append("whole" if picture == whole else "before")
        scene.close()
        if is_over:
            break
    assert number > 1, "the change made no commit"
    # Once it is there whole, a later crash does not undo it.
    assert seen == sorted(seen), seen
