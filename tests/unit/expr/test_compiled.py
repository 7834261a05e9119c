"""Compiled expressions: NULLs, laziness, the context, refusals, and how long a comparison takes."""

import timeit
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from tenure.base.errors import UserError
from tenure.expr import Context, Volatility, check, compile, require_immutable, volatility
from tenure.expr.function_table import FUNCTIONS
from tenure.expr.functions.function import Function
from tenure.expr.tree import build as b
from tenure.expr.tree.expressions import Call, Case, ColumnRef
from tenure.expr.types.datatype import Type
from tests.unit.expr.oracle import CONTEXT, constant, named
from tests.unit.expr.values import MOOD, mood

INT, TEXT, BOOL, NUMERIC = named("int4"), named("text"), named("bool"), named("numeric")
COMPARISON_SECONDS_MAX = 1e-6
"""Of a column with a constant; it takes about 0.1 microseconds on a quiet machine."""


def run(typed: b.Typed, types: dict[int, Type] | None = None, row: dict[int, Any] | None = None) -> Any:
    return compile(typed.node, types or {}, lambda id: MOOD)(row or {}, CONTEXT)


def sqlstate(act: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as raised:
        act()
    return raised.value.sqlstate


def truth(value: bool | None) -> b.Typed:
    return b.const(value, BOOL)


@pytest.mark.parametrize(("left", "right"), [*product([True, False, None], repeat=2)])
def test_and_and_or_have_three_truths(left: bool | None, right: bool | None) -> None:
    known = {left, right}
    both = False if False in known else None if None in known else True
    either = True if True in known else None if None in known else False
    assert run(b.conjunction(truth(left), truth(right))) is both
    assert run(b.disjunction(truth(left), truth(right))) is either


STRICT = [each for each in FUNCTIONS if each.is_strict and each.arguments and not each.wants_context]
STAND_INS = {
    "anyenum": "mood",
    "anyarray": "int4[]",
    "anycompatiblearray": "int4[]",
    **dict.fromkeys(("any", "anyelement", "anycompatible", "anynonarray"), "int4"),
}


@pytest.mark.invariant("expr-strict")
@pytest.mark.parametrize("function", STRICT, ids=[each.id for each in STRICT])
def test_a_strict_function_answers_null_to_null(function: Function) -> None:
    names = [STAND_INS.get(each, each) for each in function.arguments]
    kinds = [mood() if each == "mood" else named(each) for each in names]
    tree = Call(function.id, tuple(ColumnRef(at) for at in range(len(kinds))))
    evaluate = compile(tree, dict(enumerate(kinds)))
    assert evaluate(dict.fromkeys(range(len(kinds))), CONTEXT) is None


@pytest.mark.invariant("expr-lazy")
def test_what_is_not_needed_is_not_evaluated() -> None:
    broken = b.call("=", b.call("/", constant(1, "int4"), b.column(1, INT)), constant(1, "int4"))
    types, row = {1: INT}, {1: 0}
    assert sqlstate(lambda: run(broken, types, row)) == "22012"
    assert run(b.conjunction(truth(False), broken), types, row) is False
    assert run(b.disjunction(truth(True), broken), types, row) is True
    assert run(b.case([(truth(True), truth(True))], broken), types, row) is True
    assert run(b.case([(truth(None), broken), (truth(False), broken)]), types, row) is None
    assert run(b.coalesce(truth(False), broken), types, row) is False


def test_in_and_any_are_null_where_they_cannot_tell() -> None:
    one, two, null = constant(1, "int4"), constant(2, "int4"), b.literal(None)
    assert run(b.in_list(one, one, null)) is True
    assert run(b.in_list(one, two, null)) is None
    assert run(b.in_list(one, two, null, is_negated=True)) is None
    assert run(b.in_list(one, two, is_negated=True)) is True
    assert run(b.in_list(b.const(None, INT), two)) is None
    assert run(b.quantified("=", one, b.literal("{2,NULL}"))) is None
    assert run(b.quantified("=", one, b.literal("{}"))) is False
    assert run(b.quantified("<>", one, b.literal("{2,3}"), is_all=True)) is True
    assert run(b.quantified("=", one, b.literal(None))) is None


def test_in_finds_values_that_python_would_tell_apart() -> None:
    nan = b.const(float("nan"), named("float8"))
    assert run(b.in_list(nan, nan)) is True
    assert run(b.in_list(b.const("a  ", named("char(3)")), b.const("a ", named("char(2)")))) is True


def test_greatest_and_least_pass_over_nulls() -> None:
    null, one, two = b.const(None, INT), constant(1, "int4"), constant(2, "int4")
    assert run(b.greatest(null, one, two)) == 2
    assert run(b.least(null, one, two)) == 1
    assert run(b.greatest(null, null)) is None
    assert run(b.greatest(b.const(float("nan"), named("float8")), b.literal("Infinity"))) != 1
    assert run(b.least(b.const("happy", mood()), b.literal("sad"))) == "sad"


def test_null_is_distinct_from_values_only() -> None:
    null, one = b.const(None, INT), constant(1, "int4")
    assert run(b.is_distinct(null, null)) is False
    assert run(b.is_distinct(null, one)) is True
    assert run(b.is_distinct(one, one, is_negated=True)) is True


def test_enums_compare_by_the_order_of_their_members() -> None:
    kind = mood()
    tree = b.call("<", b.column(1, kind), b.literal("ok"))
    assert [run(tree, {1: kind}, {1: each}) for each in ("sad", "meh", "ok", "happy", None)] == [
        *[True, True, False, False],
        None,
    ]


def test_time_and_ids_come_from_the_context() -> None:
    ids = iter(range(1, 9))
    context = Context(1_000_000, 2_000_000, lambda: UUID(int=5), lambda: next(ids), lambda: 3_000_000)
    answers = {
        name: compile(b.call(name).node, {})({}, context)
        for name in ("now", "statement_timestamp", "clock_timestamp", "gen_random_uuid", "unique_rowid")
    }
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert answers == {
        "now": start + timedelta(seconds=1),
        "statement_timestamp": start + timedelta(seconds=2),
        "clock_timestamp": start + timedelta(seconds=3),
        "gen_random_uuid": UUID(int=5),
        "unique_rowid": 1,
    }
    assert compile(b.call("current_date").node, {})({}, context) == date(1970, 1, 1)


def test_a_tree_is_as_volatile_as_its_most_volatile_function() -> None:
    fixed = b.call("lower", b.column(1, TEXT))
    stable = b.call("<", b.column(2, named("timestamptz")), b.call("now"))
    volatile = b.coalesce(b.column(3, named("uuid")), b.call("gen_random_uuid"))
    levels = [volatility(each.node) for each in (fixed, stable, volatile)]
    assert levels == [Volatility.IMMUTABLE, Volatility.STABLE, Volatility.VOLATILE]
    require_immutable(fixed.node, "index predicate")
    assert sqlstate(lambda: require_immutable(stable.node, "index predicate")) == "42P17"


def test_check_gives_the_type_of_a_tree() -> None:
    tree = b.call("+", b.column(1, INT), b.column(2, NUMERIC)).node
    assert check(tree, {1: INT, 2: NUMERIC}).sql_name == "numeric"


def test_wrong_trees_are_refused() -> None:
    assert sqlstate(lambda: check(ColumnRef(9), {})) == "42703"
    assert sqlstate(lambda: check(Call("nothing()", ()), {})) == "42883"
    assert sqlstate(lambda: check(Call("lower(text)", (ColumnRef(1),)), {1: INT})) == "42804"
    assert sqlstate(lambda: check(Call("lower(text)", ()), {})) == "42804"
    mixed = Case(((constant(True, "bool").node, ColumnRef(1)),), ColumnRef(2))
    assert sqlstate(lambda: check(mixed, {1: INT, 2: TEXT})) == "42804"
    not_bool = b.negation(b.column(1, BOOL)).node
    assert sqlstate(lambda: check(not_bool, {1: INT})) == "42804"


def test_the_builder_refuses_what_postgres_refuses() -> None:
    assert sqlstate(lambda: b.call("nothing", constant(1, "int4"))) == "42883"
    assert sqlstate(lambda: b.call("+", constant(True, "bool"), constant(1, "int4"))) == "42883"
    assert sqlstate(lambda: b.negation(constant(1, "int4"))) == "42804"
    assert sqlstate(lambda: b.case([(truth(True), constant(1, "int4"))], b.const("x", TEXT))) == "42804"
    assert sqlstate(lambda: b.assign(b.const("x", TEXT), INT)) == "42804"
    assert sqlstate(lambda: b.cast(constant(True, "bool"), named("date"))) == "42846"
    assert sqlstate(lambda: b.call("=", constant(1, "int4"), b.literal("x"))) == "22P02"


def test_a_default_is_cast_to_its_column() -> None:
    assert run(b.assign(constant(5, "int4"), named("numeric(5,2)"))) == Decimal("5.00")
    assert str(run(b.assign(constant(5, "int4"), named("numeric(5,2)")))) == "5.00"
    assert run(b.assign(constant(Decimal("2.5"), "numeric"), INT)) == 3
    assert sqlstate(lambda: run(b.assign(b.const("long", TEXT), named("varchar(2)")))) == "22001"
    assert run(b.cast(b.const("long", TEXT), named("varchar(2)"))) == "lo"


def test_a_call_that_would_fill_the_memory_is_refused() -> None:
    word, many = b.const("x", TEXT), constant(2**31 - 1, "int4")
    assert sqlstate(lambda: run(b.call("repeat", word, many))) == "54000"
    assert sqlstate(lambda: run(b.call("lpad", word, many))) == "54000"


@pytest.mark.parametrize("pattern", ["%a%a%a%a%a%a%a%a%b", "%_%_%_%_%_%_%_%x"])
def test_a_pattern_with_many_wildcards_stays_quick(pattern: str) -> None:
    tree = b.call("~~", b.column(1, TEXT), b.literal(pattern))
    assert run(tree, {1: TEXT}, {1: "a" * 3000}) is False


def test_a_column_is_compared_with_a_constant_in_well_under_a_microsecond() -> None:
    evaluate = compile(b.call(">", b.column(1, INT), b.literal("5")).node, {1: INT})
    row = {1: 6}
    rounds = 20_000
    best = min(timeit.repeat(lambda: evaluate(row, CONTEXT), number=rounds, repeat=9)) / rounds
    assert best < COMPARISON_SECONDS_MAX
