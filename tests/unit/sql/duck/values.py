"""Values of all kinds for DuckDB's templates, and DuckDB and `expr` side by side over them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import product
from math import inf, nan
from typing import Any
from uuid import UUID

import pyarrow as pa

from tenure.base.env import SystemEnv
from tenure.base.errors import TenureError
from tenure.base.memory import lone_account
from tenure.catalog.descriptors.definitions import Table, TypeRef
from tenure.expr.tree.compiled import compile
from tenure.expr.tree.expressions import Node
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.duck.duck_types import NotShared, Value, shape_of
from tenure.sql.duck.engine import DuckEngine
from tenure.sql.duck.expressions import Expressions, ExpressionScope
from tenure.sql.duck.rendering import Rendered, Used
from tenure.table.arrow import array
from tenure.table.columnar import Columns
from tests.unit.sql.schema import MOOD
from tests.unit.table.trees import CONTEXT

ENUM = TypeRef("mood", (), enum=7)


def kind_of(family: str, modifiers: tuple[int, ...] = ()) -> Type:
    if family == "anyenum":
        return type_of(ENUM, lambda id: MOOD)
    if family == "char" and not modifiers:
        modifiers = (4,)
    return type_of(TypeRef(family, modifiers))


_TEXTS = (
    *("", "a", "A", "abc", "ABC", "aBc", "ß", "ẞ", "é", "É", "e\u0301", "日本語", "İ", "ı", "ǆ", "ſ", "Σας"),
    *(
        "%",
        "_",
        "a%",
        "%b%",
        "_b_",
        "\\",
        "\\%",
        "a\\",
        "it's",
        " x ",
        "  ",
        "\t a\n",
        "😀",
        "👩‍👧",
        "aa",
        "ab",
        "b",
    ),
)
VALUES: dict[str, tuple[Any, ...]] = {
    "bool": (True, False),
    "int2": (0, 1, -1, 2, 7, -7, 32767, -32768),
    "int4": (0, 1, -1, 2, 3, 7, -7, 2**31 - 1, -(2**31)),
    "int8": (0, 1, -1, 2, 7, -7, 2**53 + 1, 2**63 - 1, -(2**63)),
    "float4": (0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 3.5, 2**-149, 3.4028234663852886e38, inf, -inf, nan, 2.0**24),
    "float8": (0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 3.5, -0.5, 5e-324, 1e-200, 1.7e308, 2e9, inf, -inf, nan, 0.1),
    "text": _TEXTS,
    "varchar": _TEXTS,
    "char": ("", "a", "ab", "a b", "ß", "A"),
    "bytea": (b"", b"\0", b"a", b"ab", b"\xff\xfe", b"\0\0"),
    "uuid": (UUID(int=0), UUID(int=1), UUID(int=2**128 - 1), UUID("12345678-1234-5678-1234-567812345678")),
    "date": (
        date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2000, 2, 29),
        date(2024, 12, 30), date(2021, 1, 3), date(999, 5, 17),
    ),
    "time": (time(0), time(23, 59, 59, 999999), time(12, 30)),
    "timestamp": (
        datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 13, 14, 15, 123456),
        datetime(2021, 1, 3), datetime(2000, 2, 29),
    ),
    "anyenum": ("sad", "ok", "happy"),
}  # fmt: skip
VALUES["char"] = tuple(kind_of("char").accept(each) for each in VALUES["char"])
VALUES["timestamptz"] = tuple(each.replace(tzinfo=UTC) for each in VALUES["timestamp"])

DECIMALS: dict[tuple[int, int], tuple[Decimal, ...]] = {
    (4, 2): tuple(map(Decimal, ("0.00", "1.50", "-99.99", "99.99", "0.01", "-0.50", "2.50", "1.00"))),
    (10, 0): tuple(map(Decimal, ("0", "1", "-9999999999", "32767", "40000", "3000000000"))),
    (18, 6): tuple(map(Decimal, ("0.000000", "1.500000", "-123456789012.123456", "0.500000", "2.500000"))),
    (19, 19): tuple(map(Decimal, ("0E-19", "0.1234567890123456789", "-0.0000000000000000001"))),
    (38, 10): tuple(map(Decimal, ("0E-10", "1.5000000000", "9999999999999999999999999999.9999999999"))),
}

ROWS_MAX = 700
"""Combinations per template."""

FAILURES_MAX = 30
"""Of those that fail in PostgreSQL, how many are tried in DuckDB, one by one."""


class Bench:
    """DuckDB beside `expr`, over rows of given types."""

    def __init__(self) -> None:
        self.engine = DuckEngine(SystemEnv(), memory_bytes=1 << 28, threads=1)

    def rendered(self, tree: Node, types: Sequence[Type]) -> Value:
        columns = [Value(f"t1.c{at}", kind, shape_of(kind)) for at, kind in enumerate(types)]

        def refuse(*_: Any) -> Value:
            raise NotShared("no subqueries here")

        return Expressions(columns, ExpressionScope(CONTEXT, lambda id: MOOD, refuse)).render(tree)

    def answers(
        self, value: Value, types: Sequence[Type], rows: Sequence[tuple[Any, ...]]
    ) -> list[Any] | None:
        """What DuckDB says for each row; None if it fails."""
        arrays = {
            f"c{at}": array(kind, [kind.pack(row[at]) for row in rows]) for at, kind in enumerate(types)
        }
        arrays["n"] = pa.array(range(len(rows)))
        table: Any = Table
        rendered = Rendered(
            f"SELECT {value.sql} AS c0 FROM d1 AS t1 ORDER BY n", (), {1: Used(table)}, (value,)
        )
        columns = Columns(pa.table(arrays), has_dead=False)
        found = self.engine.run(rendered, lambda: {1: columns}, lambda: None, account=lone_account(1 << 30))
        return None if found is None else [row[0] for row in found]

    def check(self, tree: Node, types: Sequence[Type], rows: Sequence[tuple[Any, ...]]) -> int:
        """Every row has the same answer in both, or DuckDB none; returns how many had one."""
        value = self.rendered(tree, types)
        evaluate = compile(tree, dict(enumerate(types)), lambda id: MOOD)
        good: list[tuple[Any, ...]] = []
        bad: list[tuple[Any, ...]] = []
        expected: list[Any] = []
        for row in rows:
            try:
                expected.append(evaluate(row, CONTEXT))
                good.append(row)
            except TenureError:
                bad.append(row)
        for row in bad[:: len(bad) // FAILURES_MAX + 1]:
            assert self.answers(value, types, [row]) is None, f"{value.sql} of {row} should fail"
        return self._compare(value, types, good, expected)

    def _compare(
        self, value: Value, types: Sequence[Type], rows: Sequence[tuple[Any, ...]], expected: Sequence[Any]
    ) -> int:
        if not rows:
            return 0
        found = self.answers(value, types, rows)
        if found is not None:
            differ = [
                (row, got, want)
                for row, got, want in zip(rows, found, expected, strict=True)
                if (type(got), repr(got)) != (type(want), repr(want))
            ]
            assert differ == [], value.sql
            return len(rows)
        if len(rows) == 1:
            return 0
        half = len(rows) // 2
        return self._compare(value, types, rows[:half], expected[:half]) + self._compare(
            value, types, rows[half:], expected[half:]
        )


def rows_of(*columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Every combination, NULLs included; some of them if they are many."""
    every = list(product(*[(*values, None) for values in columns]))
    step = max(1, len(every) // ROWS_MAX)
    return every[::step] if len(every) > ROWS_MAX * 2 else every


def families(id: str) -> list[str]:
    return [each for each in id[id.rindex("(") + 1 : -1].split(",") if each]


def decimal_pairs() -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    yield from product(DECIMALS, DECIMALS)
