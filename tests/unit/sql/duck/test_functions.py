"""Every template of DuckDB against the function it stands for, over all kinds of values."""

from collections.abc import Iterator

import pytest

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.function_table import function_with_id
from tenure.expr.tree.build import const
from tenure.expr.tree.expressions import (
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    Node,
    NullIf,
)
from tenure.expr.types.type_names import type_of
from tenure.sql.duck.duck_types import NotShared
from tenure.sql.duck.functions import CASTS, NOT_OF_DATES, PARTS, PATTERNS, TEMPLATES, TRUNCATED
from tenure.sql.duck.numbers import NUMERIC
from tests.unit.sql.duck.values import DECIMALS, VALUES, Bench, decimal_pairs, families, kind_of, rows_of


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.engine.close()


@pytest.mark.parametrize("id", TEMPLATES)
def test_a_template_is_the_function(bench: Bench, id: str) -> None:
    function_with_id(id)
    names = families(id)
    tree = Call(id, tuple(ColumnRef(at) for at in range(len(names))))
    rows = rows_of(*[VALUES[name] for name in names])
    assert bench.check(tree, [kind_of(name) for name in names], rows) > len(rows) // 20


@pytest.mark.parametrize("id", PATTERNS)
def test_a_known_pattern_is_the_function(bench: Bench, id: str) -> None:
    for pattern in VALUES["text"]:
        tree = Call(id, (ColumnRef(0), const(pattern, kind_of("text")).node))
        bench.check(tree, [kind_of("text")], rows_of(VALUES["text"]))


@pytest.mark.parametrize("id", NUMERIC)
def test_numeric_is_exact_or_not_shared(bench: Bench, id: str) -> None:
    count = len(families(id))
    tree = Call(id, tuple(ColumnRef(at) for at in range(count)))
    checked = 0
    for scales in decimal_pairs() if count == 2 else ((each,) for each in DECIMALS):
        try:
            checked += bench.check(
                tree,
                [kind_of("numeric", each) for each in scales],
                rows_of(*[DECIMALS[each] for each in scales]),
            )
        except NotShared:
            continue
    assert checked > 20


@pytest.mark.parametrize("pair", CASTS)
def test_a_cast_is_the_cast(bench: Bench, pair: tuple[str, str]) -> None:
    source, target = pair
    tree = Cast(ColumnRef(0), TypeRef(target), "explicit")
    assert bench.check(tree, [kind_of(source)], rows_of(VALUES[source])) > 1


@pytest.mark.parametrize("source", ["int2", "int4", "int8", *DECIMALS])
@pytest.mark.parametrize("target", ["int2", "int4", "int8", None, (3, 1), (20, 0), (38, 20)])
def test_casts_of_numeric_round_as_postgres_does(bench: Bench, source: object, target: object) -> None:
    if isinstance(source, str) and isinstance(target, str):
        return
    ref = TypeRef(target) if isinstance(target, str) else TypeRef("numeric", target or ())  # type: ignore[arg-type]
    kind = kind_of(source) if isinstance(source, str) else kind_of("numeric", source)  # type: ignore[arg-type]
    values = VALUES[source] if isinstance(source, str) else DECIMALS[source]  # type: ignore[index]
    for context in ("explicit", "assignment"):
        bench.check(Cast(ColumnRef(0), ref, context), [kind], rows_of(values))


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
@pytest.mark.parametrize("unit", TRUNCATED)
def test_date_trunc_is_the_same(bench: Bench, kind: str, unit: str) -> None:
    tree = Call(f"date_trunc(text,{kind})", (const(unit, kind_of("text")).node, ColumnRef(0)))
    assert bench.check(tree, [kind_of(kind)], rows_of(VALUES[kind])) > 3


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
@pytest.mark.parametrize("unit", PARTS)
@pytest.mark.parametrize("name", ["extract", "date_part"])
def test_parts_of_days_are_the_same(bench: Bench, kind: str, unit: str, name: str) -> None:
    if kind == "date" and unit in NOT_OF_DATES:
        return
    tree = Call(f"{name}(text,{kind})", (const(unit, kind_of("text")).node, ColumnRef(0)))
    assert bench.check(tree, [kind_of(kind)], rows_of(VALUES[kind])) > 3


EQUALITIES = ("int4", "float8", "text", "uuid", "date", "bool", "bytea", "anyenum", "char", "timestamptz")


@pytest.mark.parametrize("family", EQUALITIES)
def test_what_is_built_on_equality_and_order_is_the_same(bench: Bench, family: str) -> None:
    equality = f"=({family},{family})"
    a, b = ColumnRef(0), ColumnRef(1)
    trees: list[Node] = [
        IsDistinct(equality, a, b),
        IsDistinct(equality, a, b, is_negated=True),
        NullIf(equality, a, b, a),
        Coalesce((a, b)),
        InList(equality, a, (b, const(VALUES[family][1], kind_of(family)).node)),
        InList(equality, a, (b, a), is_negated=True),
        IsNull(a),
        IsNull(a, is_negated=True),
        Case(((Call(equality, (a, b)), a),), b),
        Case(((Call(equality, (a, b)), a),)),
        *(Extreme((a, b), is_greatest=each) for each in (True, False) if family != "float8"),
        *(
            IsTruth(Call(equality, (a, b)), truth, negated)
            for truth in (True, False, None)
            for negated in (True, False)
        ),
    ]
    for tree in trees:
        assert bench.check(tree, [kind_of(family)] * 2, rows_of(VALUES[family], VALUES[family])) > 5


def test_the_greatest_of_floats_is_not_asked_of_duckdb(bench: Bench) -> None:
    """Of 0 and -0, PostgreSQL takes the first."""
    tree = Extreme((ColumnRef(0), ColumnRef(1)), is_greatest=True)
    with pytest.raises(NotShared):
        bench.check(tree, [kind_of("float8")] * 2, rows_of([0.0], [-0.0]))


@pytest.mark.parametrize("family", VALUES)
@pytest.mark.invariant("duck-exact")
def test_a_value_comes_back_as_it_was(bench: Bench, family: str) -> None:
    kind = kind_of(family)
    rows = [(kind.accept(each),) for each in VALUES[family]]
    assert bench.check(ColumnRef(0), [kind], [*rows, (None,)]) == len(rows) + 1


@pytest.mark.parametrize("family", VALUES)
def test_a_literal_is_the_value(bench: Bench, family: str) -> None:
    kind = kind_of(family)
    for each in VALUES[family]:
        tree = Case(((IsNull(ColumnRef(0)), const(kind.accept(each), kind).node),))
        assert bench.check(tree, [kind_of("int4")], [(None,), (1,)]) == 2


def test_text_of_users_cannot_leave_its_literal(bench: Bench) -> None:
    kind = type_of(TypeRef("text"))
    for text in ("'", "''", "'; DROP TABLE a1; --", "\\'", "E'\\''", "$$x$$", "/* */ --", "‮'\u200b"):
        tree = Case(((IsNull(ColumnRef(0)), const(text, kind).node),))
        assert bench.check(tree, [kind_of("int4")], [(None,)]) == 1
    with pytest.raises(NotShared):
        bench.rendered(const("a\0b", kind).node, [])
