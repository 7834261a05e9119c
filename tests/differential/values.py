"""Values of every type, as SQL: the nasty ones for calls, few and tame ones for joins and groups.

Walk: `world` fills tables from here; `expressions` takes literals and parameters.
"""

from random import Random

from tests.unit.expr.pools import POOLS

ENUM = "mood"
ENUM_LABELS = ("sad", "ok", "happy", "Überglücklich")

NASTY: dict[str, list[str]] = {
    **{kind: texts for kind, texts in POOLS.items() if kind not in ("oid", "name", "varchar")},
    "varchar(10)": ["", "a", "abc", " pad ", "Zürich", "Zz", "😀😀"],
    "numeric(10,2)": ["0", "1.50", "-0.01", "99999999.99", "-99999999.99", "NaN", "12.3"],
    "int8[]": ["{}", "{1,2}", "{9223372036854775807,NULL}", "{-1}"],
    "float8[]": ["{}", "{1.5,NaN}", "{-0,0}", "{Infinity,NULL}"],
    "bool[]": ["{}", "{t,f,NULL}"],
    "date[]": ["{}", "{2024-02-29,NULL}", "{2000-01-01,1999-12-31}"],
    "timestamptz[]": ["{}", '{"2000-01-01 00:00:00+00"}'],
    "uuid[]": ["{}", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"],
    "jsonb[]": ["{}", '{"{\\"a\\": 1}",NULL,"2"}'],
    ENUM: list(ENUM_LABELS),
    f"{ENUM}[]": ["{}", "{sad,ok}", "{happy,NULL}"],
}
"""By type: texts that are read as values of it. Timestamps at the ends of what there is are left to `expr`'s
own tests: here they would fail in most statements."""

INEXACT = ("numeric", "float4", "float8", "interval", "jsonb", "numeric[]", "numeric(10,2)")
"""Types that have equal values which look different: any of them may stand for a group."""

TAME: dict[str, list[str]] = {
    "bool": ["t", "f"],
    "int2": ["0", "1", "2", "3", "-4"],
    "int4": ["0", "1", "2", "3", "10", "-5"],
    "int8": ["0", "1", "2", "3", "1000000007", "-8"],
    "float4": ["0", "0.5", "1.5", "-2.25", "3"],
    "float8": ["0", "0.5", "1.5", "-2.25", "1024"],
    "numeric": ["0", "0.5", "1.5", "-2.25", "3", "1000.001"],
    "numeric(10,2)": ["0", "0.5", "1.50", "-2.25", "3"],
    "text": ["", "a", "A", "ab", "b", "ä", "zeta"],
    "varchar(10)": ["", "a", "A", "ab", "b ", "ö"],
    "char(5)": ["a", "A", "ab", "b"],
    "bytea": ["\\x", "\\x00", "\\x61", "\\xff00"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "date": ["2000-01-01", "2024-02-29", "1999-12-31", "2024-03-01"],
    "time": ["00:00:00", "12:34:56.789", "01:02:03"],
    "timestamp": ["2000-01-01 00:00:00", "2024-02-29 23:59:59.5", "2024-03-01 12:00:00"],
    "timestamptz": ["2000-01-01 00:00:00+00", "2024-02-29 23:59:59.5+00", "2024-07-01 12:00:00+00"],
    "interval": ["0", "1 day", "23:00:00", "1 mon", "-01:30:00"],
    "json": ['{"a": 1}', "[1, 2]", '"s"', "null"],
    "jsonb": ['{"a": 1}', "[1, 2]", '"s"', "null", "1", "2.50", '{"a": {"b": [1, null]}}'],
    "int4[]": ["{}", "{1}", "{1,2}", "{2,NULL}"],
    "text[]": ["{}", "{a}", "{a,b}", '{"",NULL}'],
    "numeric[]": ["{}", "{1.50}", "{2.5}"],
    ENUM: list(ENUM_LABELS[:3]),
    f"{ENUM}[]": ["{}", "{sad,ok}"],
}

TYPES = tuple(TAME)
"""The types that tables have columns of."""

UNORDERED = ("json",)
"""Types without comparison."""


def quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    return "'" + text.replace("'", "''") + "'"


def typed(text: str | None, kind: str) -> str:
    return f"{quoted(text)}::{kind}"


def pick(random: Random, pool: list[str], nulls: float = 0.1) -> str | None:
    return None if random.random() < nulls else random.choice(pool)


def is_array(kind: str) -> bool:
    return kind.endswith("[]")
