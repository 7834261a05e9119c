"""What counts as the same answer.

Rows are a multiset unless the order is determined; values are equal as the wire has them, but for sums of
floats. A refusal (0A000) that PostgreSQL does not make is no difference, but is counted.

Walk: `run` asks `verdict` about each statement.
"""

import re
from collections import Counter
from decimal import Decimal
from enum import Enum
from math import isclose, isnan
from struct import unpack

from tests.differential.sides import Answer, Row, Statement

NUMERIC, INTERVAL = "1700", "1186"
ARRAYS = ("1231", "1022")
"""Of numeric and float8, as percentile_disc and percentile_cont give them."""
FLOAT4, FLOAT8 = "700", "701"
CLOSE = {FLOAT4: 1e-5, FLOAT8: 1e-12}
NOT_SUPPORTED = "0A000"
CANCELED = "57014"
OUT_OF_RANGE = "22003"
_MAKES_SETS = re.compile("GROUP BY|DISTINCT|UNION|INTERSECT|EXCEPT|percentile_disc|percentile_cont|mode")
DAYS = {"year": 360, "mon": 30, "day": 1}
_PARTS = re.compile("([+-]?[0-9]+) (year|mon|day)")
_CLOCK = re.compile("([+-]?)([0-9]+):([0-9]+):([0-9.]+)$")
RUNTIME = ("22", "21")
"""Classes of errors that depend on which row is looked at first."""


class Verdict(Enum):
    SAME = "same"
    REFUSED = "refused"
    UNDETERMINED = "undetermined"
    DIFFERENT = "different"


def verdict(statement: Statement, ours: Answer, theirs: Answer) -> Verdict:
    if ours.sqlstate == NOT_SUPPORTED != theirs.sqlstate or _is_refused_product(statement, ours, theirs):
        return Verdict.REFUSED
    if CANCELED in (ours.sqlstate, theirs.sqlstate):
        return Verdict.UNDETERMINED
    if ours.sqlstate or theirs.sqlstate:
        if ours.sqlstate == theirs.sqlstate:
            return Verdict.SAME
        states = [each for each in (ours.sqlstate, theirs.sqlstate) if each]
        classes = (*RUNTIME, "23") if _has_rows_in_any_order(statement, theirs) else RUNTIME
        may_differ = not statement.has_one_error and all(each.startswith(classes) for each in states)
        return Verdict.UNDETERMINED if may_differ else Verdict.DIFFERENT
    if ours.tag != theirs.tag or ours.columns != theirs.columns:
        return Verdict.DIFFERENT
    return Verdict.SAME if _same_rows(statement, ours, theirs) else Verdict.DIFFERENT


def _is_refused_product(statement: Statement, ours: Answer, theirs: Answer) -> bool:
    """Whether V in a format multiplies an integer beyond its range, where PostgreSQL wraps around."""
    return ours.sqlstate == OUT_OF_RANGE and not theirs.sqlstate and "to_char(" in statement.text


def _has_rows_in_any_order(statement: Statement, theirs: Answer) -> bool:
    """Whether several rows may break a constraint each, and the first of them is told of."""
    if statement.kind != "write":
        return False
    return theirs.sqlstate[:2] != "23" or bool(statement.copied) or statement.text.startswith("UPDATE ")


def _same_rows(statement: Statement, ours: Answer, theirs: Answer) -> bool:
    if statement.is_ordered:
        mine, other = list(ours.rows), list(theirs.rows)
    else:
        mine, other = (sorted(each.rows, key=_place) for each in (ours, theirs))
    if mine == other:
        return True
    kinds = [kind for _, kind in ours.columns]
    if _MAKES_SETS.search(statement.text) and not statement.is_binary:
        return _by_number(mine, kinds) == _by_number(other, kinds) or _are_close(
            statement, mine, other, kinds
        )
    return _are_close(statement, mine, other, kinds)


def _are_close(statement: Statement, mine: list[Row], other: list[Row], kinds: list[str]) -> bool:
    if not statement.has_close_floats or len(mine) != len(other):
        return False
    return all(
        _is_close(a, b, kind, statement.is_binary)
        for ours_row, theirs_row in zip(mine, other, strict=True)
        for a, b, kind in zip(ours_row, theirs_row, kinds, strict=True)
    )


def _by_number(rows: list[Row], kinds: list[str]) -> Counter[tuple[object, ...]]:
    """Rows with their numbers as such: either of 1.5 and 1.50, 0 and -0, 1 mon and 30 days may be there."""
    return Counter(
        tuple(repr(_number(each, kind)) for each, kind in zip(row, kinds, strict=True)) for row in rows
    )


def _number(value: bytes | None, kind: str) -> object:
    if kind in CLOSE:
        return b"0" if value == b"-0" else value
    if value is None or kind not in (NUMERIC, *ARRAYS):
        return _seconds(value.decode()) if value is not None and kind == INTERVAL else value
    if kind in ARRAYS:
        return [_number(each.encode(), NUMERIC) for each in value.decode().strip("{}").split(",")]
    return value if value in (b"NaN", b"NULL", b"") else Decimal(value.decode()).normalize() + 0


def _seconds(interval: str) -> Decimal:
    """How long an interval is, as comparisons have it: a month has 30 days."""
    days = sum(int(count) * DAYS[unit] for count, unit in _PARTS.findall(interval))
    clock = _CLOCK.search(interval)
    if clock is None:
        return Decimal(days * 86_400)
    sign, hours, minutes, seconds = clock.groups()
    span = int(hours) * 3600 + int(minutes) * 60 + Decimal(seconds)
    return days * 86_400 + (-span if sign == "-" else span)


def _place(row: Row) -> list[tuple[bool, bytes]]:
    return [(each is None, each or b"") for each in row]


def _is_close(a: bytes | None, b: bytes | None, kind: str, is_binary: bool) -> bool:
    if a == b:
        return True
    if a is None or b is None or kind not in CLOSE:
        return False
    left, right = (_float(each, kind, is_binary) for each in (a, b))
    return (isnan(left) and isnan(right)) or isclose(left, right, rel_tol=CLOSE[kind], abs_tol=1e-12)


def _float(value: bytes, kind: str, is_binary: bool) -> float:
    if is_binary:
        return float(unpack(">f" if kind == FLOAT4 else ">d", value)[0])
    return float(value)
