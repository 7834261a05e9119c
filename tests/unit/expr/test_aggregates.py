"""Aggregates, window functions and set-returning functions answer as PostgreSQL's do."""

import random
from collections.abc import Callable, Sequence
from itertools import product

import pytest

from tenure.base.errors import UserError
from tenure.expr.aggregates.aggregate_table import AGGREGATES, aggregate_type, resolve_aggregate
from tenure.expr.aggregates.window_functions import Window, resolve_window, window_type
from tenure.expr.set_function_table import column_types, resolve_set
from tenure.expr.tree.build import UNKNOWN, Typed, coerce
from tenure.expr.tree.compiled import compile
from tenure.expr.types.datatype import Datum, Type
from tests.unit.expr.oracle import CONTEXT, Answer, Failure, Operand, Oracle, Value, named, shown
from tests.unit.expr.pools import POOLS

SEED = 20
STAND_INS = {"char": "char(5)", "any": "int4", "anyelement": "text", "anyarray": "int4[]"}
NOT_SUPPORTED = Failure("0A000")


def test_aggregates_give_what_postgres_gives(oracle: Oracle) -> None:
    chance = random.Random(SEED)
    asked: list[tuple[str, Callable[[], Answer]]] = []
    for each in AGGREGATES:
        if "anyenum" in each.arguments or each.is_ordered_set:
            continue
        kinds = [STAND_INS.get(family, family) for family in each.arguments]
        for count in (0, 1, 2, 3, 5, 8):
            rows = [_row(chance, kinds) for _ in range(count)]
            asked.append((_aggregate_sql(each.name, kinds, rows), _aggregate(each.name, kinds, rows)))
    _compare(oracle, asked)


def test_averages_and_spread_of_random_numbers_have_the_digits_of_postgres(oracle: Oracle) -> None:
    chance = random.Random(SEED)
    asked: list[tuple[str, Callable[[], Answer]]] = []
    for name, kind in product(
        ("sum", "avg", "stddev", "var_pop", "variance", "stddev_pop"),
        ("int4", "int8", "numeric", "float8", "float4"),
    ):
        for count in (1, 2, 7, 30):
            rows = [(Operand(_number(chance, kind), kind),) for _ in range(count)]
            asked.append((_aggregate_sql(name, [kind], rows), _aggregate(name, [kind], rows)))
    for name in ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_sxy"):
        for count in (1, 2, 7, 30):
            pairs = [tuple(Operand(_number(chance, "float8"), "float8") for _ in "yx") for _ in range(count)]
            kinds = ["float8", "float8"]
            asked.append((_aggregate_sql(name, kinds, pairs), _aggregate(name, kinds, pairs)))
    _compare(oracle, asked)


def test_the_choice_of_aggregates_is_that_of_postgres(oracle: Oracle) -> None:
    kinds = [*POOLS, "unknown", "int8[]"]
    asked = []
    for name in ("min", "sum", "avg", "count", "bool_and", "array_agg", "bit_or", "stddev", "json_agg"):
        for kind in kinds:
            rows = [(Operand(None, kind),)]
            asked.append((_aggregate_sql(name, [kind], rows, is_direct=True), _aggregate(name, [kind], rows)))
    _compare(oracle, asked)


@pytest.mark.parametrize("name", ["percentile_cont", "percentile_disc", "mode"])
def test_ordered_sets_give_what_postgres_gives(oracle: Oracle, name: str) -> None:
    chance = random.Random(SEED)
    fractions = [Operand(each, "float8") for each in ("0", "0.5", "0.33", "1", "2", None)]
    fractions += [Operand("{0.25,0.5,NULL,1}", "float8[]")]
    asked: list[tuple[str, Callable[[], Answer]]] = []
    for kind, fraction, count in product(("float8", "interval", "int4", "text"), fractions, (0, 1, 4, 7)):
        # No two that are equal and yet differ: PostgreSQL's sort may swap them.
        texts = ["0", "1 day", "1 month", "10 years", "25:00:00"] if kind == "interval" else POOLS[kind]
        rows = [Operand(chance.choice(texts), kind) for _ in range(count)]
        direct = [] if name == "mode" else [fraction]
        values = ", ".join([f"({each.sql})" for each in rows] or [f"(NULL::{kind})"])
        call = f"{name}({', '.join(each.sql for each in direct)}) WITHIN GROUP (ORDER BY x)"
        asked.append((f"(SELECT {call} FROM (VALUES {values}) AS t(x))", _ordered(name, direct, kind, rows)))
    _compare(oracle, asked)


CALLS = [
    "row_number()",
    "rank()",
    "dense_rank()",
    "percent_rank()",
    "cume_dist()",
    "ntile(3)",
    "ntile(20)",
    "lag(x)",
    "lead(x, 2)",
    "lag(x, -1)",
    "lag(x, 1, 7)",
    "lead(x, 1, 2.5)",
    "first_value(x)",
    "last_value(x)",
    "nth_value(x, 2)",
    "nth_value(x, 0)",
    "ntile(0)",
]


@pytest.mark.parametrize("call", CALLS)
def test_window_functions_give_what_postgres_gives(oracle: Oracle, call: str) -> None:
    values = [1, 1, 2, 3, 3, 3, 5, 8]
    rows = ", ".join(f"({each})" for each in values)
    sql = f"ARRAY(SELECT {call} OVER (ORDER BY x) FROM (VALUES {rows}) AS t(x) ORDER BY x)"
    _compare(oracle, [(sql, lambda: _window(call, values))])


SETS = [
    "generate_series(1, 5)",
    "generate_series(5, 1, -2)",
    "generate_series(1, 5, 0)",
    "generate_series(9223372036854775805, 9223372036854775807)",
    "generate_series(2147483646, 2147483647)",
    "generate_series(1, 2.5, 0.50)",
    "generate_series(1::numeric, 'NaN')",
    "generate_series(NULL::int4, 3)",
    "generate_series('2024-01-31'::timestamp, '2024-05-01', '1 month')",
    "generate_series('2024-01-31'::date, '2024-05-01'::date, '1 month')",
    "generate_series('2024-05-01'::timestamptz, '2024-01-01', '-40 days')",
    "generate_series('2024-05-01'::timestamptz, '2024-01-01', '0')",
    "unnest('{1,2,NULL}'::int4[])",
    "unnest('{{1,2},{3,4}}'::int4[])",
    "generate_subscripts('{a,b,c}'::text[], 1)",
    "generate_subscripts('{a,b,c}'::text[], 1, true)",
    "generate_subscripts('{a,b,c}'::text[], 2)",
    "string_to_table('a,b,,c', ',')",
    "string_to_table('abc', NULL)",
    "regexp_matches('foobarbaz', 'b(a)(.)', 'g')",
    "regexp_matches('foobarbaz', 'b.')",
    "regexp_split_to_table('a1b22c', '[0-9]+')",
    "regexp_split_to_table('abc', '')",
    "string_to_table('a,b,c', ',', 'b')",
    *(
        f"{name}('{text}'::{name[:5].rstrip('_')})"
        for name in (
            *("json_array_elements", "jsonb_array_elements", "json_array_elements_text"),
            *("jsonb_array_elements_text", "json_each", "jsonb_each", "json_each_text", "jsonb_each_text"),
            *("json_object_keys", "jsonb_object_keys"),
        )
        for text in ('{"b": 1, "a": [1, 2.50, "x"], "n": null, "b": "q"}', '[1, "a b", {"x": 1}, null]', "1")
    ),
]


@pytest.mark.parametrize("call", SETS)
def test_set_functions_give_what_postgres_gives(oracle: Oracle, call: str) -> None:
    columns = "t.key, t.value" if "_each" in call else "t.*"
    sql = f"ARRAY(SELECT concat_ws('|', {columns}) FROM {call} AS t)"
    _compare(oracle, [(sql, lambda: _set_rows(oracle, call))])


def _row(chance: random.Random, kinds: Sequence[str]) -> tuple[Operand, ...]:
    return tuple(Operand(chance.choice([*POOLS[kind], None]), kind) for kind in kinds)


def _number(chance: random.Random, kind: str) -> str:
    if kind in ("int4", "int8"):
        return str(chance.randint(-(10**6), 10**6))
    value = chance.uniform(-1, 1) * 10 ** chance.randint(-3, 6)
    return f"{value:.{chance.randint(0, 6)}f}"


def _aggregate_sql(
    name: str, kinds: Sequence[str], rows: Sequence[tuple[Operand, ...]], *, is_direct: bool = False
) -> str:
    columns = ", ".join(f"c{at}" for at in range(len(kinds))) or "*"
    if is_direct:
        return f"(SELECT {name}({', '.join(each.sql for each in rows[0])}))"
    nothing = ", ".join(["0", *(f"NULL::{kind}" for kind in kinds)])
    values = [", ".join([str(at + 1), *(each.sql for each in row)]) for at, row in enumerate(rows)]
    listed = ", ".join(f"({each})" for each in [nothing, *values])
    names = ", ".join(["n", *(f"c{at}" for at in range(len(kinds)))])
    return f"(SELECT {name}({columns}) FROM (VALUES {listed}) AS t({names}) WHERE n > 0)"


def _answer(run: Callable[[], tuple[Datum, Type]]) -> Answer:
    try:
        value, kind = run()
    except UserError as error:
        return Failure(error.sqlstate)
    return Value(None if value is None else kind.render(value), shown(kind))


def _evaluated(operand: Typed, target: Type) -> Datum:
    return compile(coerce(operand, target).node, {})({}, CONTEXT)


def _type(kind: str) -> Type:
    return UNKNOWN if kind == "unknown" else named(kind)


def _aggregate(name: str, kinds: Sequence[str], rows: Sequence[tuple[Operand, ...]]) -> Callable[[], Answer]:
    def run() -> tuple[Datum, Type]:
        aggregate, targets = resolve_aggregate(name, [_type(kind) for kind in kinds])
        steps = aggregate.steps(targets, CONTEXT)
        state = steps.start()
        for row in rows:
            values = [_evaluated(each.built, to) for each, to in zip(row, targets, strict=True)]
            if not aggregate.is_strict or None not in values:
                state = steps.step(state, *values)
        return steps.finish(state), aggregate_type(aggregate, targets)

    return lambda: _answer(run)


def _ordered(
    name: str, direct: Sequence[Operand], kind: str, rows: Sequence[Operand]
) -> Callable[[], Answer]:
    def run() -> tuple[Datum, Type]:
        given = [*(named(each.type) for each in direct), named(kind)]
        aggregate, targets = resolve_aggregate(name, given)
        assert aggregate.direct_count == len(direct)
        steps = aggregate.steps(targets, CONTEXT)
        values = [_evaluated(each.built, targets[-1]) for each in rows]
        state = steps.start()
        for value in sorted(values, key=targets[-1].comparable):
            state = steps.step(state, value)
        fixed = [_evaluated(each.built, to) for each, to in zip(direct, targets, strict=False)]
        return steps.finish(state, *fixed), aggregate_type(aggregate, targets)

    return lambda: _answer(run)


def _window(call: str, values: Sequence[int]) -> Answer:
    """The call over these values, sorted by them, with the usual frame."""
    name, _, rest = call.partition("(")
    words = [each.strip() for each in rest.rstrip(")").split(",") if each.strip()]

    def run() -> tuple[Datum, Type]:
        kinds = [named("numeric" if "." in each else "int4") for each in words]
        function, targets = resolve_window(name, kinds)
        columns = []
        for word, target in zip(words, targets, strict=True):
            texts = [str(each) for each in values] if word == "x" else [word] * len(values)
            columns.append([target.parse(each) for each in texts])
        first = [values.index(each) for each in values]
        peers = [(at, at + values.count(each)) for at, each in zip(first, values, strict=True)]
        window = Window(peers, [range(end) for _, end in peers])
        kind = window_type(function, targets)
        return tuple(function.run(window, *columns)), named(f"{kind.sql_name}[]")

    return _answer(run)


def _set_rows(oracle: Oracle, call: str) -> Answer:
    """The call's rows; its arguments are evaluated by the oracle, as this is not about literals."""
    name, _, rest = call.partition("(")
    arguments = rest.removesuffix(")")

    def run() -> tuple[Datum, Type]:
        words = [each.strip() for each in _arguments(arguments)]
        operands = []
        for word, value in zip(words, oracle.ask(words), strict=True):
            assert isinstance(value, Value)
            is_untyped = word == "NULL" or word[0] == word[-1] == "'"
            operands.append(Operand(value.text, "unknown" if is_untyped else value.type))
        function, targets = resolve_set(name, [_type(each.type) for each in operands])
        values = [_evaluated(each.built, to) for each, to in zip(operands, targets, strict=True)]
        kinds = column_types(function, targets)
        rows = list(function.rows(targets, CONTEXT, *values))
        return tuple(_joined(row, kinds) for row in rows), named("text[]")

    return _answer(run)


def _joined(row: tuple[Datum, ...], kinds: Sequence[Type]) -> str:
    texts = [kind.render(value) for value, kind in zip(row, kinds, strict=True) if value is not None]
    return "|".join(texts)


def _arguments(text: str) -> list[str]:
    """Split at commas outside quotes."""
    pieces, is_quoted = [""], False
    for each in text:
        is_quoted ^= each == "'"
        if each == "," and not is_quoted:
            pieces.append("")
        else:
            pieces[-1] += each
    return pieces


def _compare(oracle: Oracle, asked: Sequence[tuple[str, Callable[[], Answer]]]) -> None:
    theirs = oracle.ask([sql for sql, _ in asked])
    pairs = [(sql, answer, ask()) for (sql, ask), answer in zip(asked, theirs, strict=True)]
    assert [each for each in pairs if each[1] != each[2] and each[2] != NOT_SUPPORTED] == []
