"""Whole arrays of text against their texts one by one, and both against PostgreSQL."""

from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from tenure.base.errors import UserError
from tenure.expr.types.datatype import Type
from tenure.pipeline.reading.convert import Fault, convert
from tenure.table.arrow import Unrepresentable, array
from tests.postgres_server import Server
from tests.unit.expr.oracle import named
from tests.unit.expr.values import ARRAYS, MOODS, VALUES, mood

KINDS: dict[str, tuple[Type, st.SearchStrategy[Any]]] = {
    **{name: (named(name), values) for name, values in (VALUES | ARRAYS).items()},
    "numeric(4,0)": (named("numeric(4,0)"), VALUES["numeric(20,3)"].map(lambda each: each % 1000)),
    "numeric(30,25)": (named("numeric(30,25)"), VALUES["numeric(20,3)"].map(lambda each: each % 1000)),
    "time(2)": (named("time(2)"), VALUES["time"]),
    "timestamp(0)": (named("timestamp(0)"), VALUES["timestamp"]),
    "timestamptz(3)": (named("timestamptz(3)"), VALUES["timestamptz"]),
    "mood": (mood(), MOODS),
}
WORDS = r"""
0 -0 +0 00 -1 +1 1. .5 -.5 . - + .-5 1.-5 5.- 1..2 1.2.3 0x1F 0X1f -0x1 0xFFFFFFFF 0o17 0b11 1_000 1__0
_1 1e3 1E-3 1e400 -1e400 1e-400 0e5 0.0e9 NaN nan(1) inf -Infinity +inf infinity 99999999999999999999
9223372036854775807 9223372036854775808 -9223372036854775808 32767 32768 -32768 2147483648 1.005 -1.005
2.5 -2.5 0.0005 9999.5 99.999 123456789012345678 1234567890123456789 0.000000000000000000001
12345678901234567.995 t T true tr TRUE f of off on y n yes no 1 0 YES maybe 2024-02-29 2023-02-29
0000-01-01 0001-01-01 9999-12-31 10000-01-01 2024-1-1 20240229 epoch 12:34:56 12:34 24:00:00 23:59:60
23:59:59.999999 23:59:59.9999999 12:34:56.5 12:34:56Z 1:2:3 2024-02-29T12:34:56 2024-02-29T12
2024-02-29T12:34 2024-02-29T12:34:56.123456 2024-02-29T12:34:56.1234567 2024-02-29T12:34:56Z
2024-02-29T12:34:56+02 2024-02-29T12:34:56-05:30 2024-02-29T12:34:56+16 2024-02-29T12:34Z 2024-02-29T12Z
0001-01-01T00:00:00+01 9999-12-31T23:59:59.9-01 9999-12-31T23:59:59.9
a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11
{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11} a0eebc999c0b4ef8bb6d6bb9bd380a11
a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g a0eebc99x9c0b-4ef8-bb6d-6bb9bd380a11 \x00ff \xf \000 {1,2} {} [1]
{"a":1} null sad SAD new abcdefghi
"""
SPACED = [
    "",
    " ",
    " 1 ",
    "1 day",
    "ab      c",
    "abcdefgh  ",
    "abcdefghi",
    "2024-02-29 12:34:56 pm",
    "€" * 8,
    "€" * 9,
]
NASTY = [*WORDS.split(), *SPACED]
TEXTS = st.sampled_from(NASTY) | st.text("0123456789.-+eExX: T/Zaf€ ", max_size=12)
ZONES: list[tzinfo] = [UTC, ZoneInfo("Europe/Berlin")]


def one_by_one(kind: Type, texts: list[str | None], zone: tzinfo) -> list[Any]:
    """Packed values; a SQLSTATE where there is none."""
    return [None if each is None else _one(kind, each, zone) for each in texts]


def _one(kind: Type, text: str, zone: tzinfo) -> Any:
    try:
        return kind.pack(kind.accept(kind.parse_in(text, zone)))
    except UserError as error:
        return Fault(error.sqlstate, str(error))


@pytest.mark.invariant("convert-exact")
@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_an_array_of_texts_gives_what_its_texts_give_one_by_one(name: str, data: st.DataObject) -> None:
    kind, values = KINDS[name]
    zone = data.draw(st.sampled_from(ZONES))
    rendered = values.map(lambda value: kind.render_in(kind.accept(value), zone))
    texts = data.draw(st.lists(st.none() | rendered | TEXTS, max_size=40))
    check(kind, texts, zone)


@pytest.mark.invariant("convert-exact")
@pytest.mark.parametrize("name", KINDS)
def test_odd_spellings_are_read_or_refused_as_the_type_does(name: str) -> None:
    kind, _ = KINDS[name]
    for zone in ZONES:
        check(kind, [*NASTY, None], zone)
        for each in NASTY:
            check(kind, [each], zone)


def check(kind: Type, texts: list[str | None], zone: tzinfo) -> None:
    expected = one_by_one(kind, texts, zone)
    made = convert(kind, pa.array(["-", *texts], pa.string()).slice(1), zone)
    good = [None if isinstance(each, Fault) else each for each in expected]
    assert made.faults == {row: each for row, each in enumerate(expected) if isinstance(each, Fault)}
    for row, packed in made.rest.items():
        assert packed == good[row]
        with pytest.raises(Unrepresentable):
            array(kind, [packed])
        good[row] = None
    assert made.array.type == array(kind, []).type
    made.array.validate(full=True)
    assert list(map(repr, made.array.to_pylist())) == list(map(repr, array(kind, good).to_pylist()))


PLAIN = [
    *("int2", "int8", "float4", "float8", "numeric(20,3)", "numeric(4,0)", "bool", "uuid", "date"),
    *("time(2)", "timestamp(0)", "timestamptz(3)", "varchar(8)", "char(8)"),
]
KNOWN = {"nan(1)", "1.2.3"}
"""What PostgreSQL takes and the types here do not; besides, these take a day before a time of day."""


@pytest.mark.parametrize("name", PLAIN)
def test_postgresql_reads_the_same_from_the_same_texts(postgres: Server, name: str) -> None:
    kind = KINDS[name][0]
    texts = [each for each in NASTY if each.isascii() and each not in KNOWN]
    if kind.family == "time":
        texts = [each for each in texts if "T" not in each]
    made = convert(kind, pa.array(texts))
    values = [made.rest.get(row, each) for row, each in enumerate(packed_of(kind, made.array))]
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = (
            "SELECT CASE WHEN pg_input_is_valid(e, {0}) THEN concat(e::{1}) END "
            "FROM unnest(%s::text[]) AS t(e)"
        )
        asked = sql.SQL(query).format(sql.Literal(name), sql.SQL(name))
        theirs = [text for (text,) in connection.execute(asked, [texts]).fetchall()]
    ours = [None if packed is None else kind.render(kind.unpack(packed)) for packed in values]
    unsupported = {row for row, fault in made.faults.items() if fault.sqlstate == "0A000"}
    answers = zip(texts, ours, theirs, strict=True)
    assert [each for row, each in enumerate(answers) if each[1] != each[2] and row not in unsupported] == []


def packed_of(kind: Type, values: Any) -> list[Any]:
    if kind.family == "date":
        return [None if each is None else each - 10_957 for each in values.view(pa.int32()).to_pylist()]
    if kind.family in ("timestamp", "timestamptz"):
        start = 10_957 * 86_400_000_000
        return [None if each is None else each - start for each in values.view(pa.int64()).to_pylist()]
    if kind.family == "numeric":
        return [None if each is None else kind.pack(each) for each in values.to_pylist()]
    return list(values.to_pylist())
