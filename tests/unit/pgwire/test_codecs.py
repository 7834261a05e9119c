"""Bytes against PostgreSQL: it must read what is written here, and be read, in both formats."""

import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import pq

from tenure.base.errors import UserError
from tenure.expr import Interval, Json
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.zones import zone_named
from tenure.pgwire.values.codecs import BINARY, TEXT, decoder, encoder, oid_of, type_with_oid
from tests.postgres_server import Server
from tests.unit.expr.oracle import named
from tests.unit.expr.values import MOOD, MOODS, VALUES, arrays_of, mood

BATCH = 25
FORMATS = (TEXT, BINARY)


def _with_one_nan(value: float) -> float:
    """Bits of a NaN do not pass through text."""
    return float("nan") if value != value else value


SCALARS = {
    **VALUES,
    "float4": VALUES["float4"].map(_with_one_nan),
    "float8": VALUES["float8"].map(_with_one_nan),
    # PostgreSQL does not read its own text of the longest negative time.
    "interval": VALUES["interval"].filter(lambda value: value.micros > -(2**63)),
}
GENERATED = {
    **SCALARS,
    **{f"{name}[]": arrays_of(each) for name, each in SCALARS.items() if name != "bpchar"},
}

NUMBERS = "0 0.0000 -1 1.50 10000 100000000 0.0001 0.00001 9999.9999 NaN Infinity -Infinity 1234567890"
NAMES = """
    bool int2 int4 int8 float4 float8 numeric numeric(10,2) numeric(5,-2) text varchar varchar(7) char(3)
    bpchar bytea uuid date time time(3) timestamp timestamp(0) timestamptz timestamptz(6) interval
    interval(2) json jsonb numeric(4,1)[] varchar(7)[] int4[] interval[] jsonb[] uuid[] bool[]
"""
EXTREMES: dict[str, Sequence[Datum]] = {
    "int2": (-(2**15), 2**15 - 1, 0),
    "int4": (-(2**31), 2**31 - 1),
    "int8": (-(2**63), 2**63 - 1),
    "float8": (-0.0, 5e-324, 1.7976931348623157e308, float("inf"), float("nan")),
    "numeric": tuple(map(Decimal, NUMBERS.split())),
    "date": (date.min, date.max, date(2000, 1, 1)),
    "time": (time.min, time.max),
    "timestamp": (datetime.min, datetime.max, datetime(2000, 1, 1)),
    "timestamptz": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    "interval": (Interval(), Interval(-(2**31), 5, -(2**63) + 1), Interval(14, -3, 14_706_789_000)),
    "text": ("", " ", "\U0001f600", "NULL"),
    "bytea": (b"", b"\0\xff\\"),
    "json": (Json('{"b": 1 , "a":[1.50,null]}'),),
    "text[]": ((), ("NULL", None, "", '"\\', "a,b"), (("a", "b"), ("c", None))),
    "numeric[]": ((Decimal("1.0"), None, Decimal("NaN")),),
}


class Peer:
    """One connection, spoken to in bytes."""

    def __init__(self, server: Server) -> None:
        self.connection = psycopg.connect(server.dsn, autocommit=True)
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute("CREATE TYPE pg_temp.mood AS ENUM ('sad', 'meh', 'ok', 'happy')")

    def ask(self, query: str, values: Sequence[bytes], oids: Sequence[int], given: int, wanted: int) -> Any:
        return self.connection.pgconn.exec_params(query.encode(), values, oids, [given] * len(values), wanted)

    def echo(self, type: str, data: Sequence[bytes], oid: int, given: int, wanted: int) -> list[bytes]:
        """The values again, by way of a column of the type, in the format wanted."""
        asked = ", ".join(f"${n + 1}::{type}" for n in range(len(data)))
        result = self.ask(f"SELECT {asked}", data, [oid] * len(data), given, wanted)
        assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
        return [result.get_value(0, n) for n in range(len(data))]

    def sqlstate(self, data: bytes, oid: int, format: int) -> str | None:
        result = self.ask("SELECT $1", [data], [oid], format, format)
        code = result.error_field(pq.DiagnosticField.SQLSTATE)
        return None if code is None else code.decode()


@pytest.fixture(scope="module")
def peer(postgres: Server) -> Iterator[Peer]:
    peer = Peer(postgres)
    yield peer
    peer.connection.close()


def _check_against(peer: Peer, type: Type, name: str, values: Sequence[Datum]) -> None:
    oid = oid_of(type).oid
    for given_format in FORMATS:
        for wanted in FORMATS:
            sent = [encoder(type, given_format)(value) for value in values]
            got = peer.echo(name, sent, oid, given_format, wanted)
            assert got == [encoder(type, wanted)(value) for value in values]
            read = [decoder(type, wanted)(data) for data in got]
            assert list(map(type.render, read)) == list(map(type.render, values))


@pytest.mark.invariant("codec-exact")
@pytest.mark.parametrize("name", EXTREMES)
def test_postgresql_reads_and_writes_the_same_bytes_at_the_ends_of_a_type(peer: Peer, name: str) -> None:
    _check_against(peer, named(name), name, EXTREMES[name])


@pytest.mark.invariant("codec-exact")
@pytest.mark.parametrize("name", GENERATED)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_postgresql_reads_and_writes_the_same_bytes(peer: Peer, name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(GENERATED[name], min_size=BATCH, max_size=BATCH))
    _check_against(peer, named(name), name, values)


@pytest.mark.invariant("codec-exact")
@pytest.mark.parametrize("name", ["timestamp", "timestamptz", "timestamptz[]", "date"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata"])
def test_text_follows_the_time_zone_of_the_session(peer: Peer, zone: str, name: str) -> None:
    kind, session = named(name), zone_named(zone)
    texts = ["2024-07-01 12:00:00", "2024-12-01 12:00:00.5", "2024-07-01 12:00:00.25+00"]
    given = [f'{{"{text}"}}'.encode() if name.endswith("[]") else text.encode() for text in texts]
    values = [decoder(kind, TEXT, session)(each) for each in given]
    peer.connection.execute(f"SET TimeZone = '{zone}'")
    try:
        for wanted in FORMATS:
            theirs = peer.echo(name, given, oid_of(kind).oid, TEXT, wanted)
            assert [encoder(kind, wanted, session)(value) for value in values] == theirs
    finally:
        peer.connection.execute("SET TimeZone = 'UTC'")


@pytest.mark.parametrize("format", FORMATS)
@given(label=MOODS)
@settings(max_examples=10, deadline=None)
def test_an_enum_is_its_label_in_either_format(format: int, label: str) -> None:
    assert encoder(mood(), format)(label) == label.encode()
    assert decoder(mood(), format)(label.encode()) == label


def test_an_array_of_an_enum_comes_back(peer: Peer) -> None:
    value = ("sad", None, "happy")
    for format in FORMATS:
        kind = mood(is_array=True)
        assert decoder(kind, format)(encoder(kind, format)(value)) == value
    assert peer.echo("pg_temp.mood[]", [encoder(mood(is_array=True), TEXT)(value)], 0, 0, 0) == [
        b"{sad,NULL,happy}"
    ]


def test_an_unknown_label_is_refused_in_either_format() -> None:
    for format in FORMATS:
        assert _sqlstate(mood(), b"angry", format) == "22P02"


# The shorter ways of text

_DAYS_AS_TEXT = st.from_regex(r"\A(0000|0001|9999|2[0-9]{3})-(0[0-9]|1[0-3])-(0[0-9]|[12][0-9]|3[0-2])\Z")
_CLOCKS_AS_TEXT = st.from_regex(r"\A[ T](0[0-9]|2[0-5]):([0-5][0-9]|60):([0-5][0-9]|60)(\.[0-9]{1,7})?\Z")
_ZONES_AS_TEXT = st.from_regex(r"\A[+-][0-2][0-9](:[0-6][0-9])?\Z")
TIMES = st.tuples(_DAYS_AS_TEXT, st.just("") | _CLOCKS_AS_TEXT, st.just("") | _ZONES_AS_TEXT).map("".join)
NUMBERS_AS_TEXT = st.from_regex(r"\A[ +-]?(0x)?[0-9_]{1,12}[ .e]?\Z")


@pytest.mark.invariant("quick-text")
@pytest.mark.parametrize(
    "name", ["date", "timestamp", "timestamptz", "timestamp(2)", "int2", "int4", "int8", "text"]
)
@given(text=TIMES | NUMBERS_AS_TEXT)
@settings(max_examples=100, deadline=None)
def test_a_shorter_way_reads_what_the_type_reads(name: str, text: str) -> None:
    kind = named(name)
    assert _outcome(lambda: decoder(kind, TEXT)(text.encode())) == _outcome(lambda: kind.parse(text))


def _outcome(read: Callable[[], Datum]) -> tuple[Datum, Any]:
    try:
        value = read()
    except UserError as error:
        return error.sqlstate, str(error)
    return value, getattr(value, "tzinfo", None)


@pytest.mark.invariant("quick-text")
@pytest.mark.parametrize("name", ["bool", "int8", "float8", "text", "timestamp", "timestamptz"])
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_shorter_way_writes_what_the_type_writes(name: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[name])
    assert encoder(named(name), TEXT)(value) == named(name).render(value).encode()


# What types are called


def test_oids_sizes_and_modifiers_are_postgresqls(peer: Peer) -> None:
    names = NAMES.split()
    asked = ", ".join(f"NULL::{name}" for name in names)
    result = peer.ask(f"SELECT {asked}", [], [], TEXT, TEXT)
    theirs = [(result.ftype(n), result.fsize(n), result.fmod(n)) for n in range(len(names))]
    assert [tuple(oid_of(named(name))) for name in names] == theirs


@pytest.mark.parametrize("name", [name for name in GENERATED if "(" not in name])
def test_a_type_is_found_by_its_oid(name: str) -> None:
    assert type_with_oid(oid_of(named(name)).oid) == named(name)


def test_an_enum_and_its_array_are_found_by_oids_of_their_own() -> None:
    for is_array in (False, True):
        kind = mood(is_array=is_array)
        assert type_with_oid(oid_of(kind).oid, lambda id: MOOD) == kind
        assert type_with_oid(oid_of(kind).oid) is None
    assert oid_of(mood()).oid != oid_of(mood(is_array=True)).oid


@pytest.mark.parametrize("oid", [0, 705])
def test_an_unspecified_type_is_left_to_the_statement(oid: int) -> None:
    assert type_with_oid(oid) is None


@pytest.mark.parametrize("oid", [1, 99_999, 2**32 - 1])
def test_an_oid_that_no_type_has_is_refused(oid: int) -> None:
    with pytest.raises(UserError) as caught:
        type_with_oid(oid)
    assert caught.value.sqlstate == "42704"


# What is no value


def _sqlstate(type: Type, data: bytes, format: int) -> str | None:
    try:
        decoder(type, format)(data)
    except UserError as error:
        return error.sqlstate
    return None


NOT_HERE = "0A000"
"""Infinite times, 24:00:00, lower bounds: PostgreSQL has them, Tenure refuses them."""

WRONG_TEXT = [
    ("int4", b"x"),
    ("int4", b""),
    ("int4", b"1\0"),
    ("int4", b"2147483648"),
    ("int2", b"0x7FFF"),
    ("int8", b" 1_000 "),
    ("int8", b"9" * 5000),
    ("int4", b"\xff"),
    ("int4", "١".encode()),
    ("text", b"\xc3\x28"),
    ("text", b"\xed\xa0\x80"),
    ("text", b"\xf4\x90\x80\x80"),
    ("text", b"a\0b"),
    ("bool", b"maybe"),
    ("float8", b"1e400"),
    ("numeric", b"1e200000"),
    ("uuid", b"123"),
    ("bytea", b"\\xzz"),
    ("date", b"2024-02-30"),
    ("time", b"25:00"),
    ("timestamp", b"never"),
    ("interval", b"one"),
    ("json", b"{"),
    ("jsonb", b'"\\u0000"'),
    ("int4[]", b"{1,"),
    ("int4[]", b"{x}"),
]
_HEADER = struct.Struct("!iii")
WRONG_BINARY = [
    *((name, b"") for name in VALUES if "(" not in name and name not in ("text", "bytea", "bpchar")),
    *(
        (name, b"\1" * 17)
        for name in ("bool", "int2", "int4", "int8", "float4", "float8", "uuid", "interval")
    ),
    *((name, b"\1" * 3) for name in ("int4", "int8", "date", "time", "timestamp", "numeric", "int4[]")),
    ("bool", b"\2"),
    ("text", b"\xff"),
    ("json", b"\xff"),
    ("json", b"{"),
    ("jsonb", b"\1{"),
    ("date", struct.pack("!i", 2**31 - 2)),
    ("date", struct.pack("!i", -(2**31) + 1)),
    ("time", struct.pack("!q", -1)),
    ("time", struct.pack("!q", 86_400_000_001)),
    ("timestamp", struct.pack("!q", 2**63 - 2)),
    ("timestamptz", struct.pack("!q", -(2**63) + 1)),
    ("numeric", struct.pack("!HhHH", 1, 0, 0, 0)),
    ("numeric", struct.pack("!HhHH", 65535, 0, 0, 0)),
    ("numeric", struct.pack("!HhHHH", 1, 0, 0, 0, 10_000)),
    ("numeric", struct.pack("!HhHHH", 1, 0, 1, 0, 1)),
    ("numeric", struct.pack("!HhHHH", 1, 0, 0, 0x4000, 1)),
    ("numeric", struct.pack("!HhHHHH", 1, 0, 0, 0, 1, 1)),
    ("numeric", struct.pack("!HhHHH", 1, 32767, 0, 0, 9999)),
    ("numeric", struct.pack("!HhHHH", 1, -32768, 0, 16383, 9999)),
    ("int4[]", _HEADER.pack(-1, 0, 23)),
    ("int4[]", _HEADER.pack(7, 0, 23)),
    ("int4[]", _HEADER.pack(1, 2, 23)),
    ("int4[]", _HEADER.pack(0, 0, 20)),
    ("int4[]", _HEADER.pack(0, 0, 23) + b"x"),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!ii", -1, 1)),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!ii", 2**31 - 1, 1)),
    ("int4[]", _HEADER.pack(2, 0, 23) + struct.pack("!iiii", 60_000, 1, 60_000, 1)),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!ii", 100_000_000, 1)),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!ii", 0, 1)),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!iii", 1, 1, 2**31 - 1)),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!iii", 1, 1, -2)),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!iiih", 1, 1, 2, 5)),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!iiiq", 1, 1, 8, 5)),
    ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!iiiii", 1, 1, 4, 5, 6)),
]


@pytest.mark.parametrize(("name", "data"), WRONG_TEXT)
def test_wrong_text_fails_as_in_postgresql(peer: Peer, name: str, data: bytes) -> None:
    if b"\0" in data:  # libpq would end the text there
        assert _sqlstate(named(name), data, TEXT) == "22021"
    else:
        assert _sqlstate(named(name), data, TEXT) == peer.sqlstate(data, oid_of(named(name)).oid, TEXT)


@pytest.mark.parametrize(("name", "data"), WRONG_BINARY)
def test_wrong_bytes_fail_as_in_postgresql(peer: Peer, name: str, data: bytes) -> None:
    theirs = peer.sqlstate(data, oid_of(named(name)).oid, BINARY)
    assert _sqlstate(named(name), data, BINARY) == theirs


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("date", struct.pack("!i", 2**31 - 1)),
        ("date", struct.pack("!i", -800_000)),
        ("time", struct.pack("!q", 86_400_000_000)),
        ("timestamp", struct.pack("!q", 2**63 - 1)),
        ("timestamptz", struct.pack("!q", -(2**63))),
        ("interval", struct.pack("!qii", 2**63 - 1, 2**31 - 1, 2**31 - 1)),
        ("int4[]", _HEADER.pack(1, 0, 23) + struct.pack("!iiii", 1, 0, 4, 5)),
    ],
)
def test_what_only_postgresql_has_is_refused(peer: Peer, name: str, data: bytes) -> None:
    assert peer.sqlstate(data, oid_of(named(name)).oid, BINARY) is None
    assert _sqlstate(named(name), data, BINARY) == NOT_HERE


def test_a_jsonb_of_another_version_is_refused() -> None:
    assert _sqlstate(named("jsonb"), b"\2{}", BINARY) == "22P03"


def test_the_sign_of_a_numeric_is_checked_before_the_rest_is_read() -> None:
    assert _sqlstate(named("numeric"), b"\0\0\xd0\0\0 ", BINARY) == "22P03"
    assert _sqlstate(named("numeric"), b"\0\0\xd0\0\0\0", BINARY) == "08P01"


def test_a_format_that_does_not_exist_is_refused() -> None:
    for make in (encoder, decoder):
        with pytest.raises(UserError, match="unsupported format code: 2"):
            make(named("int4"), 2)


def test_digits_beyond_the_scale_of_a_binary_numeric_are_cut_off(peer: Peer) -> None:
    data = struct.pack("!HhHHHH", 2, 0, 0x4000, 2, 1, 9999)
    assert decoder(named("numeric"), BINARY)(data) == Decimal("-1.99")
    assert peer.echo("numeric", [data], 1700, BINARY, TEXT) == [b"-1.99"]


def test_a_type_with_modifiers_holds_values_to_them_in_either_format() -> None:
    assert decoder(named("char(3)"), BINARY)(b"a") == "a  "
    assert decoder(named("numeric(4,1)"), BINARY)(
        encoder(named("numeric"), BINARY)(Decimal("1.25"))
    ) == Decimal("1.3")
    for format in FORMATS:
        assert _sqlstate(named("varchar(2)"), b"abc", format) == "22001"


@pytest.mark.invariant("binary-hostile")
def test_a_small_message_cannot_ask_for_endless_digits() -> None:
    number = struct.pack("!HhHHH", 1, 32767, 0, 16383, 1)
    many = struct.pack("!iiiii", 1, 0, 1700, 10_000, 1) + (struct.pack("!i", len(number)) + number) * 10_000
    assert _sqlstate(named("numeric[]"), many, BINARY) == "54000"


@pytest.mark.invariant("binary-hostile")
@pytest.mark.parametrize("name", GENERATED)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_bytes_give_a_value_or_an_error_of_the_user(name: str, data: st.DataObject) -> None:
    kind = named(name)
    whole = encoder(kind, BINARY)(data.draw(GENERATED[name]))
    at = data.draw(st.integers(0, len(whole)))
    noise = data.draw(st.binary(max_size=12))
    for hostile in (noise, whole[:at], whole[:at] + noise, whole[:at] + noise + whole[at + len(noise) :]):
        for format in FORMATS:
            _sqlstate(kind, hostile, format)
