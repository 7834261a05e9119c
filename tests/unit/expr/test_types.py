"""What every type promises: exact storage, ordered keys, text that reads back; and columns' checks."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cmp_to_key
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenure.base.errors import CorruptData, UserError
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr import Interval, Json, Jsonb, parse_type_name, type_of
from tenure.expr.tree.build import call, column, const
from tenure.expr.tree.compiled import compile
from tenure.expr.types.datatype import Type
from tenure.kv import encoding
from tests.unit.expr.oracle import CONTEXT, Operand, Oracle, named
from tests.unit.expr.pools import POOLS
from tests.unit.expr.values import ARRAYS, MOODS, VALUES, arrays_of, mood

CASES: list[tuple[Type, st.SearchStrategy[Any]]] = [
    *((named(name), values) for name, values in {**VALUES, **ARRAYS}.items()),
    (mood(), MOODS),
    (mood(is_array=True), arrays_of(MOODS)),
]
ORDERED = [(kind, values) for kind, values in CASES if kind.has_order]

few = settings(max_examples=40, deadline=None)
each_type = pytest.mark.parametrize(("kind", "values"), CASES, ids=[kind.sql_name for kind, _ in CASES])
each_ordered = pytest.mark.parametrize(
    ("kind", "values"), ORDERED, ids=[kind.sql_name for kind, _ in ORDERED]
)


def exact(value: Any) -> Any:
    """Tells apart what compares equal: 1.0 from 1.00, -0.0 from 0.0, a month from thirty days."""
    if isinstance(value, tuple):
        return tuple(exact(each) for each in value)
    if isinstance(value, Jsonb):
        return named("jsonb").render(value)
    return value.parts if isinstance(value, Interval) else (type(value), repr(value))


@pytest.mark.invariant("type-pack-exact")
@each_type
@few
@given(data=st.data())
def test_what_is_packed_comes_back_to_the_last_digit(
    kind: Type, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(kind.pack(value)))
    assert exact(kind.unpack(stored)) == exact(value)


@pytest.mark.invariant("type-text-exact")
@each_type
@few
@given(data=st.data())
def test_what_is_written_reads_back_to_the_last_digit(
    kind: Type, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    assert exact(kind.parse(kind.render(value))) == exact(value)


@each_type
@few
@given(data=st.data())
def test_a_column_accepts_its_values_unchanged(
    kind: Type, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    assert exact(kind.accept(value)) == exact(value)
    assert kind.accept(None) is None


@pytest.mark.invariant("type-key-exact")
@each_ordered
@few
@given(data=st.data())
def test_keys_give_the_value_back_exactly_where_they_say_so(
    kind: Type, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    (key,) = encoding.decode(encoding.encode([kind.key(value)]))
    back = kind.from_key(key)  # type: ignore[arg-type]
    assert kind.comparable(back) == kind.comparable(value)
    if kind.key_is_exact:
        assert exact(back) == exact(value)


@pytest.mark.invariant("type-key-order")
@each_ordered
@few
@given(data=st.data())
def test_keys_are_ordered_as_the_operators_say(
    kind: Type, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    left, right = data.draw(values), data.draw(values)
    columns = {1: kind, 2: kind}

    def holds(sign: str) -> bool:
        tree = call(sign, column(1, kind), column(2, kind)).node
        return bool(compile(tree, columns, _no_enum)({1: left, 2: right}, CONTEXT))

    first, second = encoding.encode([kind.key(left)]), encoding.encode([kind.key(right)])
    assert (first < second, first == second, first > second) == (holds("<"), holds("="), holds(">"))
    assert first < encoding.encode([kind.key(None)])


def _no_enum(id: int) -> Any:
    raise AssertionError("the columns have their types")


@pytest.mark.invariant("type-key-order")
@pytest.mark.parametrize("name", [name for name in POOLS if name != "json"])
def test_keys_are_ordered_as_postgres_orders(oracle: Oracle, name: str) -> None:
    kind, texts = named(name), POOLS[name]
    literals = ", ".join(f"({at}, {Operand(text, name).sql})" for at, text in enumerate(texts))
    asked = f"SELECT n, rank() OVER (ORDER BY v) FROM (VALUES {literals}) AS t(n, v) ORDER BY v, n"
    theirs = oracle.rows(asked)
    keys = [encoding.encode([kind.key(kind.parse(text))]) for text in texts]
    ours = [(at, 1 + sum(key < keys[at] for key in keys)) for at in range(len(keys))]
    assert sorted(ours, key=lambda pair: (pair[1], pair[0])) == theirs


@pytest.mark.parametrize("kind", [named(name) for name in POOLS], ids=list(POOLS))
@few
@given(text=st.text(max_size=12) | st.text('0123456789+-.:/eTZP{},"\\ ', max_size=20))
@example("1" * 6000)
@example("1e" + "0" * 6000 + "1")
@example("1" * 6000 + " days")
@example("1:" + "1" * 6000)
@example("{" * 6000)
def test_any_text_is_read_or_refused_with_a_reason(kind: Type, text: str) -> None:
    try:
        value = kind.parse(text)
    except UserError:
        return
    assert exact(kind.parse(kind.render(value))) == exact(value)


# Columns


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [
        ("int2", 32768, "22003"),
        ("int4", 2**31, "22003"),
        ("int8", -(2**63) - 1, "22003"),
        ("int4", True, "42804"),
        ("int4", "1", "42804"),
        ("float4", 1e39, "22003"),
        ("numeric(4,2)", Decimal("99.995"), "22003"),
        ("varchar(3)", "abcd", "22001"),
        ("char(3)", "ab d", "22001"),
        ("text", "a\0b", "22021"),
        ("text", "\ud800", "22021"),
        ("bool", 1, "42804"),
        ("date", datetime(2024, 1, 1), "42804"),
        ("timestamp", datetime(2024, 1, 1, tzinfo=UTC), "42804"),
        ("timestamptz", datetime(2024, 1, 1), "42804"),
        ("time", time(1, tzinfo=UTC), "42804"),
        ("int4[]", ((1, 2), (3,)), "2202E"),
        ("int4[]", (1, (2,)), "2202E"),
        ("int2[]", (70000,), "22003"),
        ("uuid", "x", "42804"),
        ("jsonb", {}, "42804"),
    ],
)
def test_a_column_refuses_what_it_cannot_hold(name: str, value: Any, sqlstate: str) -> None:
    assert _sqlstate(lambda: named(name).accept(value)) == sqlstate


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        ("numeric(4,2)", Decimal("1.005"), Decimal("1.01")),
        ("numeric(4,2)", Decimal("-1.005"), Decimal("-1.01")),
        ("numeric(2,-3)", Decimal("12500"), Decimal("13000")),
        ("numeric", 5, Decimal("5")),
        ("varchar(3)", "abc   ", "abc"),
        ("char(4)", "ab", "ab  "),
        ("char(2)", "ab   ", "ab"),
        ("timestamp(0)", datetime(2024, 1, 1, 0, 0, 0, 500_000), datetime(2024, 1, 1, 0, 0, 1)),
        ("int4[]", [1, [2, 3]][:1], (1,)),
    ],
)
def test_a_column_rounds_cuts_and_pads_as_postgres_does(name: str, value: Any, held: Any) -> None:
    assert exact(named(name).accept(value)) == exact(held)


def test_an_instant_is_kept_in_utc() -> None:
    berlin = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    assert named("timestamptz").accept(berlin) == datetime(2024, 1, 1, 11, tzinfo=UTC)
    assert named("timestamptz").accept(berlin).tzinfo is UTC


def test_an_explicit_cast_cuts_what_a_column_refuses() -> None:
    assert named("varchar(2)").truncate("abc") == "ab"
    assert named("char(2)").truncate("abc") == "ab"
    assert named("varchar(2)[]").truncate(("abc", None)) == ("ab", None)


def test_json_has_no_order() -> None:
    assert _sqlstate(lambda: named("json").key(Json("1"))) == "42883"
    assert _sqlstate(lambda: named("json[]").key((Json("1"),))) == "42883"


# Enums


def test_an_enum_is_ordered_by_its_physical_bytes_not_by_its_labels() -> None:
    labels = ["happy", "meh", "ok", "sad"]
    assert sorted(labels, key=mood().comparable) == ["sad", "meh", "ok", "happy"]
    assert mood().pack("meh") == b"\x50"


def test_a_member_on_its_way_is_read_but_not_written() -> None:
    assert mood().unpack(b"\x90") == "new"
    assert mood().parse("new") == "new"
    assert _sqlstate(lambda: mood().accept("new")) == "55P04"


def test_an_enum_refuses_other_labels_and_unknown_bytes() -> None:
    assert _sqlstate(lambda: mood().accept("angry")) == "22P02"
    with pytest.raises(CorruptData):
        mood().unpack(b"\x01")


def test_an_enum_needs_its_descriptor() -> None:
    assert _sqlstate(lambda: type_of(TypeRef("mood", enum=7))) == "42704"


# Names


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("integer", TypeRef("int4")),
        ("BIGINT", TypeRef("int8")),
        ("double  precision", TypeRef("float8")),
        ("float(24)", TypeRef("float4")),
        ("decimal(10)", TypeRef("numeric", (10, 0))),
        ("numeric( 10 , 2 )[]", TypeRef("numeric", (10, 2), is_array=True)),
        ("character varying(5)", TypeRef("varchar", (5,))),
        ("char", TypeRef("char", (1,))),
        ("bpchar", TypeRef("char")),
        ("timestamp(3) with time zone", TypeRef("timestamptz", (3,))),
        ("timestamp without time zone", TypeRef("timestamp")),
        ("int4[][]", TypeRef("int4", is_array=True)),
        ("text array", TypeRef("text", is_array=True)),
        ("pg_catalog.int4", TypeRef("int4")),
    ],
)
def test_types_are_known_by_all_their_names(text: str, ref: TypeRef) -> None:
    assert parse_type_name(text) == ref


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("strange", "42704"),
        ("unknown", "42704"),
        ("", "42704"),
        ("varchar(0)", "22023"),
        ("numeric(0)", "22023"),
        ("numeric(1001)", "22023"),
        ("float(54)", "22023"),
        ("int4(3)", "42601"),
        ("timetz", "0A000"),
        ("interval day to second", "0A000"),
    ],
)
def test_names_of_no_type_are_refused(text: str, sqlstate: str) -> None:
    assert _sqlstate(lambda: parse_type_name(text)) == sqlstate


@pytest.mark.parametrize("name", [*VALUES, *ARRAYS])
def test_the_name_of_a_type_leads_back_to_it(name: str) -> None:
    assert parse_type_name(named(name).sql_name) == named(name).ref


def test_types_are_made_once() -> None:
    assert type_of(TypeRef("numeric", (10, 2))) is type_of(TypeRef("numeric", (10, 2)))


# Intervals and jsonb as values


def test_a_month_equals_thirty_days() -> None:
    month, days = Interval(1), Interval(0, 30)
    assert month == days and hash(month) == hash(days)
    assert sorted([Interval(0, 31), month, Interval(0, 29)])[1] is month


def test_jsonb_keeps_the_last_of_equal_keys_and_sorts_short_keys_first() -> None:
    value = named("jsonb").parse('{"bb": 1, "a": 2, "bb": 3}')
    assert named("jsonb").render(value) == '{"a": 2, "bb": 3}'


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    for name in ("json", "jsonb"):
        assert _sqlstate(lambda name=name: named(name).parse("[" * 100_000)) in ("54001", "22P02")  # type: ignore[misc]
    assert _sqlstate(lambda: named("jsonb").parse("[" * 300 + "]" * 300)) == "54001"


def test_years_that_python_cannot_hold_are_refused_as_not_supported() -> None:
    for text in ("infinity", "-infinity", "10000-01-01", "0044-03-15 BC"):
        assert _sqlstate(lambda text=text: named("timestamp").parse(text)) == "0A000"  # type: ignore[misc]


def test_null_sorts_last_in_arrays() -> None:
    kind = named("int4[]")
    arrays = [(1, None), (1, 2), (), (None,), (1,), ((1, 2),)]
    order = sorted(arrays, key=cmp_to_key(lambda a, b: -1 if kind.comparable(a) < kind.comparable(b) else 1))
    assert order == [(), (1,), (1, 2), ((1, 2),), (1, None), (None,)]


def test_constants_hold_every_type() -> None:
    for value, name in ((UUID(int=5), "uuid"), (date(2024, 1, 1), "date"), (Interval(1, 2, 3), "interval")):
        tree = const(value, named(name)).node
        assert exact(compile(tree, {})({}, CONTEXT)) == exact(value)


def _sqlstate(run: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as raised:
        run()
    return raised.value.sqlstate
