"""NDJSON: members by name, each read as its column's type reads text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import BadInput
from tenure.pipeline.reading import FileLimits, NdJson, ReadTask, TargetColumn, TaskInput
from tenure.table.packing import unpack
from tests.unit.expr.oracle import named
from tests.unit.pipeline.reading.files import Read, memory, read_all, read_file, read_split

STRICT, LOOSE = NdJson(), NdJson(ignores_unknown=True)


def read_lines(*lines: str, types: tuple[str, ...], format: NdJson = STRICT, **more: Any) -> Read:
    return read_file("\n".join(lines).encode(), *types, format=format, rejects_max=99, **more)


def test_members_are_found_by_name_and_missing_ones_are_null() -> None:
    found = read_lines('{"b": "x", "a": 1}', "", '{"a": null}', "  ", "{}", types=("int8", "text"))
    assert found.rows == [(1, "x"), (None, None), (None, None)]
    assert found.lines == [1, 3, 5]
    assert found.rejects == []


def test_values_are_read_as_their_text_would_be() -> None:
    types = ("numeric(9,3)", "bool", "text", "timestamp", "float8")
    line = '{"a": 1.23456789e3, "b": true, "c": 1.50, "d": "2024-02-29 12:00", "e": "Infinity"}'
    ((a, b, c, d, e),) = read_lines(line, types=types).rows
    assert (str(a), b, c, d.isoformat(), e) == ("1234.568", True, "1.50", "2024-02-29T12:00:00", float("inf"))


def test_json_columns_take_any_member_and_arrays_take_lists() -> None:
    members = '"a": {"x": [1.0, "y", null, false]}, "b": "s", "c": [1, null, 3]'
    line = "{" + members + ', "d": [["a\\"b", "NULL"], ["", "{"]]}'
    ((a, b, c, d),) = read_lines(line, types=("jsonb", "json", "int4[]", "text[]")).rows
    assert unpack(a) == '{"x": [1.0, "y", null, false]}'
    assert unpack(b) == '"s"'
    assert named("int4[]").unpack(unpack(c)) == (1, None, 3)
    assert named("text[]").unpack(unpack(d)) == (('a"b', "NULL"), ("", "{"))


def test_what_is_wrong_with_a_line_is_said_with_its_number() -> None:
    found = read_lines(
        '{"a": 1}',
        "[1]",
        '{"a": 1',
        '{"a": "x"}',
        '{"z": 1}',
        '{"a": NaN}',
        '{"b": "\\ud800"}',
        '{"b": "\\u0000"}',
        '{"a": 2}',
        types=("int8", "text"),
    )
    assert found.rows == [(1, None), (2, None)]
    assert [(each.line, each.column, each.sqlstate) for each in found.rejects] == [
        (2, "", "22P02"),
        (3, "", "22P02"),
        (4, "a", "22P02"),
        (5, "", "42703"),
        (6, "", "22P02"),
        (7, "b", "22021"),
        (8, "b", "22021"),
    ]
    assert found.rejects[3].raw == '{"z": 1}'


def test_a_column_may_have_any_name() -> None:
    data = b'{"a\\"b": 1, "\\u00e9": 2}\n'
    targets = (TargetColumn('a"b', 1, named("int8")), TargetColumn("é", 2, named("int8")))
    given = ReadTask(TaskInput("f", len(data)), NdJson(), targets)
    assert read_all([given], memory(f=data)).rows == [(1, 2)]
    plain = given.but(targets=targets[1:], format=LOOSE)
    assert read_all([plain], memory(f=data)).rows == [(2,)]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read_lines('\ufeff{"a": 1}', '{"a": 2}', types=("int8",)).rows == [(1,), (2,)]


def test_unknown_members_can_be_passed_over() -> None:
    assert read_lines('{"z": 1, "a": 2}', types=("int8",), format=LOOSE).rows == [(2,)]


def test_deep_json_is_refused_before_it_is_read() -> None:
    deep = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
    found = read_lines(deep, '{"a": "' + "[" * 1000 + '"}', types=("json",))
    assert [(each.line, each.sqlstate) for each in found.rejects] == [(1, "54001")]
    assert found.lines == [2]


def test_bytes_that_are_no_text_and_long_lines_are_refused() -> None:
    data = b'{"a": "\xff"}\n{"a": "' + b"x" * 90 + b'"}\n{"a": "ok"}\n'
    limits = FileLimits(field_bytes_max=50)
    found = read_file(data, "text", format=NdJson(), limits=limits, rejects_max=9)
    assert [(each.line, each.column, each.sqlstate) for each in found.rejects] == [
        (1, "", "22021"),
        (2, "a", "54000"),
    ]
    with pytest.raises(BadInput, match="longer than 20 bytes"):
        read_file(data, "text", format=NdJson(), most=8, rejects_max=9, limits=FileLimits(row_bytes_max=20))


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(1, 40), st.integers(1, 30))
def test_a_file_gives_the_same_however_it_is_cut(
    values: list[int | None], split_bytes: int, most: int
) -> None:
    data = "".join(json.dumps({"a": each}) + "\n" for each in values).encode()
    found = read_split(data, "int8", split_bytes=split_bytes, most=most, format=NdJson())
    assert found == Read([(each,) for each in values], list(range(1, len(values) + 1)), [])


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
MEMBERS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2)
)
ROWS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c", "d", "z"]), MEMBERS), max_size=5)


@given(ROWS, st.sampled_from([STRICT, LOOSE]), st.booleans())
def test_a_block_at_once_gives_what_its_lines_give_one_by_one(
    rows: list[dict[str, Any]], format: NdJson, is_ascii: bool
) -> None:
    lines = [json.dumps(each, ensure_ascii=is_ascii).encode("utf-8", "replace") for each in rows]
    types = ("text", "jsonb", "int4[]", "float8")
    at_once = read_file(b"\n".join(lines), *types, format=format, rejects_max=99)
    # A blank line keeps a block from being read at once; it comes last, so that line numbers are the same.
    one_by_one = read_file(b"\n".join([*lines, b" ", b""]), *types, format=format, rejects_max=99)
    assert at_once == one_by_one
