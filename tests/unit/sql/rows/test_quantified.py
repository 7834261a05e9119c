"""ANY and ALL over the rows of a subquery: as one comparison after the other would answer, and run once."""

import operator
from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import Nested
from tenure.expr.types.type_names import type_of
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.plans.plan import Join, JoinKind, NestedKind, Query, Subquery, walk
from tenure.sql.plans.trees import conjuncts, equated
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tests.unit.sql.plans import col, ints, project, without_tables
from tests.unit.sql.schema import KnownNames

BOOL = type_of(TypeRef("bool"))
Row = Sequence[int | None]
SIGNS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.invariant("nested-null")
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("kind", [NestedKind.IN, NestedKind.ALL])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_rows_are_compared_as_if_each_were_tried(sign: str, kind: NestedKind, width: int) -> None:
    draw = Random(f"{sign}{kind}{width}")
    operands = list(product((1, 2, None), repeat=width))
    for _ in range(100):
        rows = [_row(draw, width) for _ in range(draw.choice((1, 2, 4, 9)))]
        expected = [
            _united([_compared(sign, each, row) for row in rows], is_any=kind is NestedKind.IN)
            for each in operands
        ]
        assert _answers(kind, sign, operands, rows) == expected, rows


def _row(draw: Random, width: int) -> Row:
    """Of few values, so that rows are often equal in part."""
    return tuple(draw.choice((1, 2, 3, None)) for _ in range(width))


def _answers(kind: NestedKind, sign: str, operands: Sequence[Row], rows: Sequence[Row]) -> list[bool | None]:
    functions = (f"{sign}(int8,int8)",) * len(rows[0])
    outer = ints(*operands)
    asked = Nested(0, tuple(col(outer, place).node for place in range(len(functions))), BOOL.ref)
    plan = project(outer, Typed(asked, BOOL))
    query = Query(plan, nested=(Subquery(kind, ints(*rows), functions=functions),))
    return [truth for (truth,) in compile(query).rows(without_tables())]


def _compared(sign: str, left: Row, right: Row) -> bool | None:
    """As the SQL standard compares rows."""
    pairs = list(zip(left, right, strict=True))
    if sign in ("=", "<>"):
        if any(a is not None and b is not None and a != b for a, b in pairs):
            return sign == "<>"
        return None if any(None in pair for pair in pairs) else sign == "="
    for a, b in pairs:
        if a is None or b is None:
            return None
        if a != b:
            return bool(SIGNS[sign](a, b))
    return sign.endswith("=")


def _united(truths: Sequence[bool | None], *, is_any: bool) -> bool | None:
    if is_any in truths:
        return is_any
    return None if None in truths else not is_any


def _joins(condition: str) -> list[Join]:
    statement = one(f"SELECT id FROM people p WHERE {condition}")
    assert statement is not None
    query = with_access(bind_query(statement.tree, KnownNames(), Parameters()))
    return [node for node in walk(query.plan) if isinstance(node, Join)]


@pytest.mark.parametrize(
    ("condition", "kind", "equalities"),
    [
        ("(id, age) IN (SELECT id, id FROM orders)", JoinKind.SEMI, 2),
        ("(id, age) = ANY (SELECT id, id FROM orders o WHERE o.person = p.id)", JoinKind.SEMI, 3),
        ("age IN (SELECT id FROM orders o WHERE o.person = p.id)", JoinKind.SEMI, 2),
        ("age < ANY (SELECT id FROM orders o WHERE o.person = p.id)", JoinKind.SEMI, 1),
        ("age NOT IN (SELECT id FROM orders o WHERE o.person = p.id)", JoinKind.ANTI, 1),
        ("age > ALL (SELECT id FROM orders o WHERE o.person = p.id)", JoinKind.ANTI, 1),
        ("NOT age > ALL (SELECT id FROM orders o WHERE o.person = p.id)", JoinKind.SEMI, 1),
    ],
)
def test_such_a_condition_is_one_join_by_its_equalities(
    condition: str, kind: JoinKind, equalities: int
) -> None:
    (join,) = _joins(condition)
    width = len(join.left.outputs)
    hashed = [part for part in conjuncts(join.condition) if equated(part, width) is not None]
    assert (join.kind, len(hashed)) == (kind, equalities)


@pytest.mark.parametrize(
    "condition",
    [
        "age NOT IN (SELECT id FROM orders)",
        "(id, age) < ANY (SELECT id, id FROM orders)",
        "age IN (SELECT id FROM orders o WHERE o.person = p.id LIMIT 1)",
        "age IN (SELECT max(id) FROM orders o WHERE o.person = p.id)",
        "age IN (SELECT id + p.age FROM orders o WHERE o.person = p.id)",
    ],
)
def test_what_is_answered_once_or_depends_on_the_row_otherwise_stays_a_subquery(condition: str) -> None:
    assert not _joins(condition)
