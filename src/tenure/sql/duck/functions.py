"""Functions that DuckDB shares with PostgreSQL: for each id, what to write there instead.

    "+(int4,int4)"      ({0} + {1})
    "length(text)"      CAST(length({0}) AS INTEGER)

A function that is not listed is not shared. A template may fail where PostgreSQL does not, or with another
error: then the rows executor runs the statement. It may never give another value, so cases that DuckDB gets
wrong end in `error(...)`. A test compares every template with `expr`'s own function, over all kinds of
values.

Floats: DuckDB gives infinities and zeros where PostgreSQL has overflow and underflow (22003), hence the
guards. Dates: DuckDB knows years that do not exist here.

Walk: `sql.duck.expressions` asks `TEMPLATES` by a call's function id.
"""

from collections.abc import Iterator
from itertools import product

_SIGNS = ("=", "<>", "<", "<=", ">", ">=")
_INTS, _FLOATS, _DAYS = ("int2", "int4", "int8"), ("float4", "float8"), ("date", "timestamp")
_FAIL = "error('as PostgreSQL')"


def _comparisons() -> Iterator[tuple[str, str]]:
    same = ("bool", "text", "bytea", "uuid", "time", "timestamptz", "char", "anyenum")
    pairs = [*((each, each) for each in same), *product(_INTS, _INTS), *product(_FLOATS, _FLOATS)]
    for sign in _SIGNS:
        for left, right in pairs:
            yield f"{sign}({left},{right})", f"({{0}} {sign} {{1}})"
        for left, right in product(_DAYS, _DAYS):
            both = (_as_timestamp(0, left, right), _as_timestamp(1, right, left))
            yield f"{sign}({left},{right})", f"({both[0]} {sign} {both[1]})"


def _as_timestamp(place: int, kind: str, other: str) -> str:
    return f"CAST({{{place}}} AS TIMESTAMP)" if kind == "date" != other else f"{{{place}}}"


def _whole_numbers() -> Iterator[tuple[str, str]]:
    for left, right in product(_INTS, _INTS):
        for sign in ("+", "-", "*"):
            yield f"{sign}({left},{right})", f"({{0}} {sign} {{1}})"
        yield f"/({left},{right})", "({0} // {1})"
    for each in _INTS:
        for name in ("%", "mod"):
            yield f"{name}({each},{each})", "({0} % {1})"
        yield f"&({each},{each})", "({0} & {1})"
        yield f"|({each},{each})", "({0} | {1})"
        yield f"#({each},{each})", "xor({0}, {1})"
        yield f"~({each})", "(~{0})"
        yield f"-({each})", "(-{0})"
        yield f"+({each})", "{0}"
        yield f"abs({each})", "abs({0})"
        yield f"@({each})", "abs({0})"


def _floats() -> Iterator[tuple[str, str]]:
    for left, right in product(_FLOATS, _FLOATS):
        a, b = ("{0}", "{1}") if left == right else ("CAST({0} AS DOUBLE)", "CAST({1} AS DOUBLE)")
        for sign in ("+", "-"):
            result = f"({a} {sign} {b})"
            yield f"{sign}({left},{right})", f"CASE WHEN isinf({result}) THEN {_FAIL} ELSE {result} END"
        result = f"({a} * {b})"
        is_lost = f"isinf({result}) OR ({result} = 0 AND {{0}} <> 0 AND {{1}} <> 0)"
        yield f"*({left},{right})", f"CASE WHEN {is_lost} THEN {_FAIL} ELSE {result} END"
        result = f"({a} / {b})"
        is_lost = f"{{1}} = 0 OR isinf({result}) OR ({result} = 0 AND {{0}} <> 0)"
        yield f"/({left},{right})", f"CASE WHEN {is_lost} THEN {_FAIL} ELSE {result} END"
    for each in _FLOATS:
        yield f"-({each})", "(-{0})"
        yield f"+({each})", "{0}"
        yield f"abs({each})", "abs({0})"
        yield f"@({each})", "abs({0})"
    for name in ("ceil", "ceiling", "floor", "trunc"):
        yield f"{name}(float8)", f"{name}({{0}})"
    for name in ("sqrt", "|/"):
        yield f"{name}(float8)", f"CASE WHEN {{0}} < 0 THEN {_FAIL} ELSE sqrt({{0}}) END"


def _text() -> Iterator[tuple[str, str]]:
    for name in ("length", "char_length", "character_length"):
        yield f"{name}(text)", "CAST(length({0}) AS INTEGER)"
    yield "octet_length(text)", "CAST(strlen({0}) AS INTEGER)"
    for name in ("length", "octet_length"):
        yield f"{name}(bytea)", "CAST(octet_length({0}) AS INTEGER)"
    yield "lower(text)", "lower({0})"
    # The one letter whose simple mapping DuckDB does not use.
    yield "upper(text)", f"CASE WHEN contains({{0}}, 'ß') THEN {_FAIL} ELSE upper({{0}}) END"
    yield "||(text,text)", "({0} || {1})"
    for name in ("starts_with", "^@"):
        yield f"{name}(text,text)", "starts_with({0}, {1})"
    for name in ("strpos", "position"):
        yield f"{name}(text,text)", "CAST(strpos({0}, {1}) AS INTEGER)"
    yield "replace(text,text,text)", "replace({0}, {1}, {2})"
    for name, there in (("btrim", "trim"), ("ltrim", "ltrim"), ("rtrim", "rtrim")):
        yield f"{name}(text)", f"{there}({{0}}, ' ')"
        yield f"{name}(text,text)", f"{there}({{0}}, {{1}})"
    for name in ("substr", "substring"):
        yield f"{name}(text,int4)", f"CASE WHEN {{1}} < 1 THEN {_FAIL} ELSE substring({{0}}, {{1}}) END"
        is_odd = "{1} < 1 OR {2} < 0"
        cut = "substring({0}, {1}, {2})"
        yield f"{name}(text,int4,int4)", f"CASE WHEN {is_odd} THEN {_FAIL} ELSE {cut} END"
    yield "left(text,int4)", f"CASE WHEN {{1}} < 0 THEN {_FAIL} ELSE left({{0}}, {{1}}) END"
    yield "right(text,int4)", f"CASE WHEN {{1}} < 0 THEN {_FAIL} ELSE right({{0}}, {{1}}) END"
    yield "md5(text)", "md5({0})"
    yield "~~(text,text)", "({0} LIKE {1} ESCAPE '\\')"
    yield "!~~(text,text)", "({0} NOT LIKE {1} ESCAPE '\\')"
    yield "~~*(text,text)", "(lower({0}) LIKE lower({1}) ESCAPE '\\')"
    yield "!~~*(text,text)", "(lower({0}) NOT LIKE lower({1}) ESCAPE '\\')"


PATTERNS = {
    "~~(text,text)": "({0} LIKE {1})",
    "!~~(text,text)": "({0} NOT LIKE {1})",
    "~~*(text,text)": "(lower({0}) LIKE lower({1}))",
    "!~~*(text,text)": "(lower({0}) NOT LIKE lower({1}))",
}
"""The same for a pattern that is known and has no backslash: DuckDB finds these much faster."""

_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"


def _within_years(day: str) -> str:
    return f"CASE WHEN {day} NOT BETWEEN {_FIRST_DAY} AND {_LAST_DAY} THEN {_FAIL} ELSE {day} END"


def _times() -> Iterator[tuple[str, str]]:
    yield "+(date,int4)", _within_years("({0} + {1})")
    yield "+(int4,date)", _within_years("({1} + {0})")
    yield "-(date,int4)", _within_years("({0} - {1})")
    yield "-(date,date)", "CAST({0} - {1} AS INTEGER)"


TRUNCATED = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
"""Units for which DuckDB's date_trunc gives the same result."""

PARTS = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute")
"""Fields for which extract gives an integer, the same as in DuckDB."""
NOT_OF_DATES = ("hour", "minute")

TEMPLATES: dict[str, str] = {
    **dict(_comparisons()),
    **dict(_whole_numbers()),
    **dict(_floats()),
    **dict(_text()),
    **dict(_times()),
}

CASTS: dict[tuple[str, str], str] = {
    **{
        (a, b): f"CAST({{0}} AS {name})"
        for a in _INTS
        for b, name in zip(_INTS, ("SMALLINT", "INTEGER", "BIGINT"), strict=True)
        if a != b
    },
    **{(a, "float8"): "CAST({0} AS DOUBLE)" for a in (*_INTS, "float4")},
    **{(a, "float4"): "CAST({0} AS FLOAT)" for a in _INTS},
    **{
        (a, b): f"CAST({{0}} AS {name})"
        for a in _FLOATS
        for b, name in zip(_INTS, ("SMALLINT", "INTEGER", "BIGINT"), strict=True)
    },
    ("bool", "int4"): "CAST({0} AS INTEGER)",
    ("int4", "bool"): "({0} <> 0)",
    **{(a, "text"): "CAST({0} AS VARCHAR)" for a in (*_INTS, "bool", "date")},
    ("text", "varchar"): "{0}",
    ("varchar", "text"): "{0}",
    ("char", "text"): "{0}",
    ("date", "timestamp"): "CAST({0} AS TIMESTAMP)",
    ("date", "timestamptz"): "CAST({0} AS TIMESTAMP)",
    ("timestamp", "date"): "CAST({0} AS DATE)",
    ("timestamptz", "date"): "CAST({0} AS DATE)",
    ("timestamp", "timestamptz"): "{0}",
    ("timestamptz", "timestamp"): "{0}",
}
"""Casts between families without modifiers, in UTC; those of numeric are in `sql.duck.numbers`."""
