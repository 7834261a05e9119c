"""Hypothesis strategies: values of every type, with what a column of the type may hold."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    DescriptorState,
    ElementState,
    EnumMember,
    EnumType,
    TypeRef,
)
from tenure.expr import Interval, Json, Jsonb, type_of
from tenure.expr.types.datatype import Type
from tenure.expr.types.floats import to_float4
from tenure.expr.types.json_values import object_of
from tenure.expr.types.numbers import tidy
from tests.unit.expr.oracle import named

MOOD = EnumType(
    id=7,
    version=1,
    modified_at=ZERO_AT,
    name="mood",
    owner="root",
    state=DescriptorState.PUBLIC,
    privileges=(),
    draining=(),
    database=100,
    schema=101,
    members=(
        EnumMember("sad", b"\x40"),
        EnumMember("ok", b"\x60"),
        EnumMember("happy", b"\x80"),
        EnumMember("meh", b"\x50"),
        EnumMember("new", b"\x90", ElementState.WRITE_ONLY),
    ),
)


def mood(*, is_array: bool = False) -> Type:
    return type_of(TypeRef("mood", enum=7, is_array=is_array), lambda id: MOOD)


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
_decimals = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12),
    st.decimals(allow_nan=False, allow_infinity=False).filter(lambda value: abs(value.adjusted()) < 100),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "1.50", "1.5", "0.00"]).map(Decimal),
).map(tidy)
_finite = _decimals.filter(lambda value: value.is_finite())


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3).map(tuple) | st.dictionaries(_text, inner, max_size=3).map(object_of)


_json = st.recursive(st.none() | st.booleans() | _text | _finite, _containers, max_leaves=6)
_datetimes = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)).map(
    lambda value: value.replace(fold=0)
)
_int4, _int8 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
_near_a_month = st.builds(
    Interval, st.integers(-2, 2), st.integers(-60, 60), st.sampled_from([0, 86_400_000_000])
)


def _is_single(value: float) -> bool:
    try:
        to_float4(value)
    except Exception:
        return False
    return True


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int2": st.integers(-(2**15), 2**15 - 1),
    "int4": st.integers(-(2**31), 2**31 - 1),
    "int8": st.integers(-(2**63), 2**63 - 1),
    "float4": st.floats().filter(_is_single).map(to_float4),
    "float8": st.floats(),
    "numeric": _decimals,
    "numeric(20,3)": _finite.filter(lambda value: abs(value) < 10**16).map(named("numeric(20,3)").accept),
    "text": _text,
    "varchar(8)": _text,
    "char(8)": _text.map(named("char(8)").accept),
    "bpchar": _text,
    "bytea": st.binary(max_size=8),
    "uuid": st.uuids(),
    "date": st.dates(),
    "time": st.times().map(lambda value: value.replace(fold=0)),
    "timestamp": _datetimes,
    "timestamptz": _datetimes.map(lambda value: value.replace(tzinfo=UTC)),
    "interval": st.builds(Interval, _int4, _int4, _int8) | _near_a_month,
    "json": _json.map(lambda value: Json(named("jsonb").render(Jsonb(value)))),
    "jsonb": _json.map(Jsonb),
}


def arrays_of(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One dimension or two, with NULLs."""
    members = st.none() | elements
    pairs = st.lists(st.tuples(members, members), min_size=1, max_size=3)
    return st.lists(members, max_size=4).map(tuple) | pairs.map(tuple)


ARRAYS = {
    f"{name}[]": arrays_of(VALUES[name])
    for name in ("int4", "numeric", "text", "char(8)", "interval", "jsonb")
}
MOODS = st.sampled_from(["sad", "ok", "happy", "meh"])
