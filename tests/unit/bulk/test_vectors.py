"""Conditions over whole columns, against what they give row by row."""

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tenure.bulk.ingest.vectors import truths
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.compiled import compile
from tenure.expr.tree.expressions import And, Call, Cast, ColumnRef, Const, InList, IsNull, Node, Not, Or
from tenure.expr.types.type_names import type_of
from tenure.table.arrow import array
from tests.unit.table.trees import CONTEXT

INT, BIG, TEXT, NUMBER, DAY, BOOL = 1, 2, 3, 4, 5, 6
KINDS = {
    INT: TypeRef("int4"),
    BIG: TypeRef("int8"),
    TEXT: TypeRef("text"),
    NUMBER: TypeRef("numeric", (8, 2)),
    DAY: TypeRef("date"),
    BOOL: TypeRef("bool"),
}
TYPES = {id: type_of(ref) for id, ref in KINDS.items()}
SIGNS = ("=", "<>", "<", "<=", ">", ">=")
ROWS = 60


def _values(rng: random.Random, id: int) -> list[Any]:
    """Packed."""
    made: dict[int, Sequence[Any]] = {
        INT: [-3, 0, 1, 2, 7],
        BIG: [-3, 0, 1, 2**40],
        TEXT: ["", "a", "ab", "b", "ä", "z"],
        NUMBER: [TYPES[NUMBER].pack(Decimal(text)) for text in ("-1.50", "0.00", "0.01", "2.00")],
        DAY: [-400, 0, 1, 5000],
        BOOL: [True, False],
    }
    return [None if rng.random() < 0.2 else rng.choice(made[id]) for _ in range(ROWS)]


def _operand(rng: random.Random, id: int) -> tuple[Node, str]:
    if rng.random() < 0.5:
        return ColumnRef(id), KINDS[id].name
    packed = next(value for value in _values(rng, id) if value is not None)
    ref = TypeRef("numeric") if id == NUMBER else KINDS[id]
    return Const(ref, packed), ref.name


def _condition(rng: random.Random, depth: int) -> Node:
    pick = rng.randrange(8 if depth else 5)
    if pick >= 7:
        return Not(_condition(rng, depth - 1))
    if pick >= 5:
        operands = tuple(_condition(rng, depth - 1) for _ in range(rng.randint(2, 3)))
        return And(operands) if rng.random() < 0.5 else Or(operands)
    if pick == 4:
        return IsNull(ColumnRef(rng.choice(list(KINDS))), rng.random() < 0.5)
    if pick == 3:
        items = tuple(Const(KINDS[INT], rng.choice([None, -3, 1, 7])) for _ in range(3))
        return InList("=(int4,int4)", ColumnRef(INT), items, rng.random() < 0.5)
    if pick == 2:
        length = Call("length(text)", (ColumnRef(TEXT),))
        return Call(f"{rng.choice(SIGNS)}(int4,int4)", (length, Const(KINDS[INT], 1)))
    if pick == 1:
        wide = Cast(ColumnRef(INT), KINDS[BIG], "implicit")
        return Call(f"{rng.choice(SIGNS)}(int8,int8)", (wide, ColumnRef(BIG)))
    id = rng.choice([INT, BIG, TEXT, NUMBER, DAY])
    (left, one), (right, other) = _operand(rng, id), _operand(rng, id)
    return Call(f"{rng.choice(SIGNS)}({one},{other})", (left, right))


@pytest.mark.invariant("vectors-exact")
@pytest.mark.parametrize("seed", range(60))
def test_a_simple_condition_is_answered_as_row_by_row(seed: int) -> None:
    rng = random.Random(seed)
    packed = {id: _values(rng, id) for id in KINDS}
    columns = {id: array(TYPES[id], values) for id, values in packed.items()}
    tree = _condition(rng, 2)
    evaluate = compile(tree, TYPES)
    rows = [
        {id: None if (value := packed[id][row]) is None else TYPES[id].unpack(value) for id in KINDS}
        for row in range(ROWS)
    ]
    made = truths(tree, columns, ROWS)
    assert made is not None
    assert made.to_pylist() == [evaluate(row, CONTEXT) for row in rows]


def test_what_is_not_simple_is_left_to_others() -> None:
    column = {7: pa.array([1.5, float("nan")])}
    tree = Call("<(float8,float8)", (ColumnRef(7), Const(TypeRef("float8"), 2.0)))
    assert truths(tree, column, 2) is None
    assert truths(Call("lower(text)", (ColumnRef(3),)), {3: pa.array(["A"])}, 1) is None
