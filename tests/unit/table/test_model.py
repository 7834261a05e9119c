"""Random tables and random writes against a dict: the same rows, the same errors, the right indexes."""

from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.base.errors import NotNullViolation, UniqueViolation
from tenure.catalog.descriptors.definitions import Index, Table, TypeRef
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.read import scan
from tests.unit.table.tables import DELETE_ONLY, ID, PUBLIC, WRITE_ONLY, Bench, column, index, table
from tests.unit.table.trees import above

VALUES: dict[str, list[Any]] = {
    "int8": [None, -1, 0, 1, 2**40],
    "text": [None, "", "a", "a b", "ü"],
    "numeric": [None, Decimal("1.0"), Decimal("1.00"), Decimal("-2.5"), Decimal("NaN")],
    "bool": [None, False, True],
    "bytea": [None, b"", b"\0\xff"],
}
COLUMNS = (2, 3, 4)
Model = dict[int, dict[int, Any]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    types = [draw(st.sampled_from(sorted(VALUES))) for _ in COLUMNS]
    columns = [column(ID, "id", is_nullable=False)]
    for id, type in zip(COLUMNS, types, strict=True):
        columns.append(column(id, f"c{id}", TypeRef(type), is_nullable=draw(st.integers(0, 3)) > 0))
    numbers = [id for id, type in zip(COLUMNS, types, strict=True) if type == "int8"]
    indexes = [draw(_indexes(number, numbers)) for number in range(2, draw(st.integers(2, 5)))]
    return table(*indexes, columns=columns)


@st.composite
def _indexes(draw: st.DrawFn, number: int, numbers: list[int]) -> Index:
    parts: list[int] = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))
    more: dict[str, Any] = {}
    number_column = draw(st.sampled_from([0, *numbers]))
    if number_column:
        more["predicate"] = above(number_column, 0)
    return index(
        number,
        f"i{number}",
        *parts,
        unique=draw(st.booleans()),
        descending=draw(st.lists(st.sampled_from(parts), unique=True)),
        state=draw(st.sampled_from([DELETE_ONLY, WRITE_ONLY, PUBLIC, PUBLIC])),
        **more,
    )


@given(st.data(), tables())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_writes_to_random_tables_do_what_a_dict_does(data: st.DataObject, table: Table) -> None:
    engine = SqliteEngine(MEMORY, env := ManualEnv())
    bench = Bench(Store(engine, env), table)
    pools = {each.id: st.sampled_from(VALUES[each.type.name]) for each in table.columns[1:]}
    model: Model = {}
    try:
        for _ in range(data.draw(st.integers(1, 12))):
            _step(data, bench, table, model, pools)
            _compare(bench, table, model)
    finally:
        engine.close()


def _step(data: st.DataObject, bench: Bench, table: Table, model: Model, pools: dict[int, Any]) -> None:
    id = data.draw(st.integers(1, 4))
    if id not in model:
        new = {ID: id} | {each: data.draw(pool) for each, pool in pools.items()}
        if _expect(table, model, new, lambda: bench.insert(*new.values())):
            model[id] = new
    elif data.draw(st.integers(0, 2)) == 0:
        bench.delete(id)
        del model[id]
    else:
        chosen = data.draw(st.lists(st.sampled_from(COLUMNS), unique=True))
        changes = {each: data.draw(pools[each]) for each in chosen}
        if data.draw(st.booleans()):
            changes[ID] = data.draw(st.integers(1, 4))
        others = {key: row for key, row in model.items() if key != id}
        if _expect(table, others, model[id] | changes, lambda: bench.update(id, changes)):
            new = model.pop(id) | changes
            model[new[ID]] = new


def _expect(table: Table, others: Model, new: dict[int, Any], write: Any) -> bool:
    """Runs a write and compares how it ends with what the rows say."""
    expected: type[Exception] | None = None
    if any(new[each.id] is None and not each.is_nullable for each in table.columns):
        expected = NotNullViolation
    elif any(_clash(each, row, new) for each in table.indexes for row in others.values()):
        expected = UniqueViolation
    try:
        write()
    except (NotNullViolation, UniqueViolation) as error:
        outcome: type[Exception] | None = type(error)
    else:
        outcome = None
    assert outcome is expected
    return outcome is None


def _clash(index: Index, row: dict[int, Any], new: dict[int, Any]) -> bool:
    if not index.is_unique or index.state is DELETE_ONLY:
        return False
    parts = [part.column for part in index.parts]
    return _holds(index, row) and _holds(index, new) and all(_equal(row[id], new[id]) for id in parts)


def _equal(left: Any, right: Any) -> bool:
    """NULL equals nothing; NaN equals itself, as in PostgreSQL."""
    return left is not None and (left == right or (left != left and right != right))


def _holds(index: Index, row: dict[int, Any]) -> bool:
    if index.predicate is None:
        return True
    value = row[index.predicate.columns[0]]
    return value is not None and value > 0


def _compare(bench: Bench, table: Table, model: Model) -> None:
    stored = {row[0]: [str(value) for value in row] for row in bench.rows()}
    assert stored == {id: [str(value) for value in row.values()] for id, row in model.items()}
    # All began empty: what is write_only is as complete as what is public.
    assert bench.wrong(*(each.id for each in table.indexes)) == []
    for each in table.indexes:
        if each.state is PUBLIC:
            found = [row.values[ID] for row in scan(bench.store.snapshot(), bench.layout(), each.id)]
            assert sorted(found) == sorted(id for id, row in model.items() if _holds(each, row))
