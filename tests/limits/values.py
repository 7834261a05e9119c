"""Inputs at the limits: by the family of their type, a few by name; `size` says how long the long ones are.

The names come back in failures. Short values stand among them, so that the long ones meet words that a
function knows.

Walk: `tests.limits.calls` asks `pool` for each argument.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

from tenure.expr.types.big_numbers import EXACT
from tenure.expr.types.interval import Interval
from tenure.expr.types.json_values import Json, Jsonb, JsonObject, object_of
from tenure.expr.types.numbers import DIGITS_BEFORE_MAX, SCALE_MAX

ELEMENTS_MAX = 1 << 20
"""Of an array or a JSON value here: they take a hundred times as much memory as letters."""

Pool = dict[str, Any]

WORDS = (
    *(
        "",
        "a",
        "b",
        "base64",
        "escape",
        "hex",
        "UTF8",
        "LATIN1",
        "NFC",
        "NFKD",
        "g",
        "gi",
        "year",
        "week",
        "UTC",
    ),
    *(
        "%",
        "%a",
        "a%",
        "%a%a%b",
        r"a\\",
        "(a+)+$",
        "a*",
        "a|b",
        "(a)(b)?",
        "^a",
        "$",
        r"\1\&",
        "YYYY-MM-DD",
        "RN",
    ),
    *("9,999.99", "FM999", "%s %I %L", "%1$s", ","),
)


def repeated(piece: str, size: int) -> str:
    return piece * max(1, size // len(piece))


def _texts(size: int) -> Pool:
    pieces = {
        **{
            "letters": "a",
            "pairs": "ab",
            "words": "ab ",
            "accents": "é",
            "wide": "日本😀",
            "capitals": "ÀÉ",
            "marks": "e\u0301",
        },
        **{
            "percents": "%a",
            "places": "%_",
            "underscores": "_",
            "backslashes": "\\",
            "escapes": r"\061",
            "codes": r"\0061",
        },
        **{
            "digits": "9",
            "zeros": "0",
            "spaces": " ",
            "commas": "a,",
            "quotes": '"',
            "apostrophes": "'",
            "newlines": "a\n",
        },
        **{
            "specifiers": "%s",
            "widths": "%-10s",
            "dates": "YYYY-MM-DD ",
            "nines": "9,9",
            "days": "1 day ",
            "Roman": "RN",
        },
        **{
            "groups": "(a)",
            "brackets": "[a-z]",
            "alternatives": "a|",
            "braces": "{",
            "colons": "1:",
            "minus": "-1",
        },
        **{"base64": "YWJj", "months": "month", "names": 'a"b.'},
    }
    texts = {name: repeated(piece, size) for name, piece in pieces.items()}
    count = min(size // 4, ELEMENTS_MAX)
    return {
        **texts,
        **{f"word {each}": each for each in WORDS},
        "last": "a" * (size - 1) + "b",
        "sought": "b" + "a" * 80,
        "half": "a" * (size // 2) + "b",
        "hexes": "\\x" + repeated("ab", size),
        "list": "{" + ",".join(["1"] * count) + "}",
        "quoted list": "{" + ",".join(['"a b"'] * count) + "}",
        "nested list": "{" + ",".join(["{1,2}"] * count) + "}",
        "blank list": "{" + " " * size + "1}",
        "json list": "[" + ",".join(["1"] * count) + "]",
        "json strings": "[" + ",".join(['"a"'] * count) + "]",
        "json lists": "[" + ",".join(["[]"] * count) + "]",
        "json members": "{" + ",".join([f'"a{n}": 1' for n in range(count)]) + "}",
        "json letters": '"' + "a" * size + '"',
        "json escapes": '"' + repeated("\\u00e9", size) + '"',
        "json digits": "9" * min(size, DIGITS_BEFORE_MAX),
        "json blank": " " * size + "1",
        "json fault": "[" + ",".join(["1"] * count) + ",]",
        "json depth": "[" * 200 + "]" * 200,
        "json great depth": "[" * size,
        "point": "0." + "1" * size,
        "exponent": "1e131071",
        "underscored": "1" + "_1" * (size // 2),
        "hex number": "0x" + "f" * size,
        "long zone": "2020-01-01 00:00:00 " + "a" * size,
        "fraction": "2020-01-01 00:00:00." + "1" * size,
    }


def _numerics(size: int) -> Pool:
    return {
        **{
            each: Decimal(each)
            for each in ("0", "1", "-1", "2", "0.5", "10", "1.0001", "NaN", "Infinity", "-Infinity")
        },
        "nines": Decimal("9" * DIGITS_BEFORE_MAX),
        "power": Decimal(1).scaleb(DIGITS_BEFORE_MAX - 1, EXACT).quantize(Decimal(1), context=EXACT),
        "threes": Decimal("3" * (DIGITS_BEFORE_MAX // 2)),
        "whole": Decimal("-" + "7" * DIGITS_BEFORE_MAX + "." + "7" * SCALE_MAX),
        "small": Decimal((0, (1,), -SCALE_MAX)),
        "near one": Decimal("1." + "0" * (SCALE_MAX - 1) + "1"),
        "broken": Decimal("0." + "3" * SCALE_MAX),
        "large": Decimal("123456789.123456789"),
        "exponent": Decimal("5999.99"),
    }


def _jsonbs(size: int) -> Pool:
    count = min(size // 8, ELEMENTS_MAX)
    deep: Any = ()
    for _ in range(200):
        deep = (deep,)
    one = Decimal(1)
    inside: Pool = {
        **{
            "null": None,
            "true": True,
            "number": one,
            "string": "a",
            "empty": (),
            "digits": Decimal("9" * DIGITS_BEFORE_MAX),
        },
        "letters": "é" * size,
        "quotes": '"' * size,
        "numbers": (one,) * count,
        "different": tuple(Decimal(n) for n in range(count)),
        "strings": tuple(f"a{n}" for n in range(count)),
        "members": object_of([(f"a{n}", one) for n in range(count)]),
        "lists": (((one,),) * (count // 2)),
        "objects": (object_of([("a", one), ("b", None)]),) * (count // 4),
        "deep": deep,
        "object": JsonObject((("a", one),)),
    }
    return {name: Jsonb(value) for name, value in inside.items()}


def _jsons(size: int) -> Pool:
    texts = _texts(size)
    good = (
        "json list",
        "json strings",
        "json members",
        "json letters",
        "json escapes",
        "json digits",
        "json depth",
    )
    return {
        **{each: Json(texts[each]) for each in good},
        "object": Json('{"a": [1, null]}'),
        "null": Json("null"),
    }


def _bytes(size: int) -> Pool:
    return {
        **{"zeros": bytes(size), "all": bytes(range(256)) * max(1, size // 256), "letters": b"a" * size},
        **{"backslashes": b"\\" * size, "percents": b"%a" * (size // 2), "places": b"%_" * (size // 2)},
        **{"one": b"a", "empty": b"", "sought": b"b" + b"a" * 80, "last": b"a" * size + b"b"},
    }


_FIXED: dict[str, Pool] = {
    "int2": {str(n): n for n in (0, 1, -1, 7, 2**15 - 1, -(2**15))},
    "int4": {str(n): n for n in (0, 1, -1, 2, 100, 100_000, 2**24, 2**31 - 1, -(2**31))},
    "int8": {str(n): n for n in (0, 1, -1, 32_177, 2**63 - 1, -(2**63))},
    "float4": {str(n): n for n in (0.0, 1.0, -1.5, 3.4028234663852886e38, float("nan"), float("inf"))},
    "float8": {
        str(n): n for n in (0.0, 1.0, -1.5, 1e308, 5e-324, 1e15, float("nan"), float("inf"), float("-inf"))
    },
    "bool": {"true": True, "false": False},
    "oid": {str(n): n for n in (0, 1, 2**32 - 1)},
    "uuid": {"zero": UUID(int=0), "most": UUID(int=2**128 - 1)},
    "date": {str(each): each for each in (date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31))},
    "time": {str(each): each for each in (time(0), time(23, 59, 59, 999_999))},
    "timestamp": {
        str(each): each for each in (datetime(1, 1, 1), datetime(2024, 2, 29, 12), datetime(9999, 12, 31, 23))
    },
    "timestamptz": {
        str(each): each
        for each in (
            datetime(1, 1, 2, tzinfo=UTC),
            datetime(2024, 2, 29, 12, tzinfo=UTC),
            datetime(9999, 12, 30, tzinfo=UTC),
        )
    },
    "interval": {
        "none": Interval(0, 0, 0),
        "micro": Interval(0, 0, 1),
        "back": Interval(-1, -1, -1),
        "most": Interval(2**31 - 1, 2**31 - 1, 2**63 - 1),
        "month": Interval(1, 0, 0),
    },
    '"char"': {"letter": "a", "none": ""},
}

_MAKERS: dict[str, Callable[[int], Pool]] = {
    "text": _texts,
    "varchar": _texts,
    "unknown": _texts,
    "char": _texts,
    "name": lambda size: {"letters": "a" * 63, "one": "a"},
    "numeric": _numerics,
    "jsonb": _jsonbs,
    "json": _jsons,
    "bytea": _bytes,
}


@cache
def pool(family: str, size: int) -> Pool:
    """Empty of families whose values only a session has."""
    if family.endswith("[]"):
        return _arrays(family[:-2], size)
    return _MAKERS[family](size) if family in _MAKERS else _FIXED.get(family, {})


def _arrays(family: str, size: int) -> Pool:
    elements = pool(family, 64)
    count = min(size // 8, ELEMENTS_MAX)
    some = list(elements.values())[:16]
    varied = tuple(some * (count // len(some)))
    arrays: Pool = {
        **{"empty": (), "NULL": (None,), "one": (some[-1],), "nulls": (None,) * count, "varied": varied},
        "same": (some[-1],) * count,
        "pairs": ((some[0], some[-1]),) * (count // 2),
        "cubes": (((some[0],),),) * (count // 4),
    }
    if family == "text":
        arrays |= {"long": ("é" * size, '"' * (size // 2)), "different": tuple(f"a{n}" for n in range(count))}
    if family == "int4":
        arrays |= {
            "different": tuple(range(count)),
            "sides": (2**12, 2**12),
            "more sides": (2, 2, 2, 2, 2, 2**18),
        }
    return arrays
