"""Parquet: columns by name and type, row groups as tasks, and files that are not what they say."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tenure.base.errors import BadInput
from tenure.pipeline.reading import FileLimits, Parquet, parquet_pages, parquet_rows, pieces, read, survey
from tenure.pipeline.reading.parquet_rows import RowGroup
from tenure.pipeline.reading.splits import SPLIT_BYTES, read_tasks
from tenure.pipeline.reading.tasks import MiB
from tests.unit.pipeline.reading.files import Read, memory, read_file, task


def written(rows_per_group: int = 1000, **columns: Any) -> bytes:
    made = io.BytesIO()
    parquet.write_table(pa.table(columns), made, row_group_size=rows_per_group)
    return made.getvalue()


def read_column(array: Any, type: str, **more: Any) -> Read:
    return read_file(written(a=array), type, format=Parquet(), rejects_max=99, **more)


def test_columns_are_found_by_name_and_others_are_passed_over() -> None:
    data = written(z=[1, 2], b=["x", None], a=[3, 4])
    found = read_file(data, "int8", "text", format=Parquet())
    assert found == Read([(3, "x"), (4, None)], [1, 2], [])


DAY, TIME = date(2024, 2, 29), datetime(2024, 2, 29, 12, 0, 0, 500_000)
TAKEN = [
    (pa.array([1, None], pa.int8()), "int8", [1, None]),
    (pa.array([2**63], pa.uint64()), "numeric(20,0)", [Decimal(2**63)]),
    (pa.array([5, 7], pa.int32()), "float8", [5.0, 7.0]),
    (pa.array([1.5, None], pa.float32()), "float8", [1.5, None]),
    (pa.array([1.1]), "float4", [pa.scalar(1.1, pa.float32()).as_py()]),
    (pa.array([Decimal("1.255")]), "numeric(5,2)", [Decimal("1.26")]),
    (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), "numeric(5,2)", [Decimal("1.25")]),
    (pa.array([True, None]), "bool", [True, None]),
    (pa.array([b"\0", None]), "bytea", [b"\0", None]),
    (pa.array([UUID(int=7).bytes], pa.binary(16)), "uuid", [UUID(int=7).bytes]),
    (pa.array([DAY]), "date", [DAY]),
    (pa.array([TIME], pa.timestamp("ms")), "timestamp", [TIME]),
    (pa.array([TIME], pa.timestamp("us")), "timestamp(0)", [datetime(2024, 2, 29, 12, 0, 1)]),
    (pa.array([TIME.replace(tzinfo=UTC)], pa.timestamp("ns", "Europe/Berlin")), "timestamptz", [TIME]),
    (pa.array([TIME.time()], pa.time64("ns")), "time", [43_200_500_000]),
    (pa.array([1, 43_200_000], pa.time32("ms")), "time", [1000, 43_200_000_000]),
    (pa.array(["2024-02-29", None]), "date", [DAY, None]),
    (pa.array(["a", "b", "a"]).dictionary_encode(), "text", ["a", "b", "a"]),
    (pa.array(["a"], pa.large_string()), "varchar(3)", ["a"]),
    (pa.nulls(2), "int8", [None, None]),
]


@pytest.mark.parametrize(("given", "type", "expected"), TAKEN)
def test_values_are_taken_as_the_column_holds_them(given: Any, type: str, expected: list[Any]) -> None:
    found = read_column(given, type)
    assert [row[0] for row in found.rows] == expected
    assert found.rejects == []


FAULTY = [
    (pa.array([1, 40_000, None]), "int2", "22003"),
    (pa.array([1, 2**63], pa.uint64()), "int8", "22003"),
    (pa.array([1.0, 1e300]), "float4", "22003"),
    (pa.array([Decimal("1.00"), Decimal("1000.00")]), "numeric(3,0)", "22003"),
    (pa.array([b"x" * 16, b"x"]), "uuid", "22P03"),
    (pa.array([0, 4_000_000], pa.date32()), "date", "22008"),
    (pa.array([0, 2**60], pa.timestamp("ms")), "timestamp", "22008"),
    (pa.array(["1", "x"]), "int8", "22P02"),
    (pa.array(["x", "y\0"]), "text", "22021"),
]


@pytest.mark.parametrize(("given", "type", "sqlstate"), FAULTY)
def test_a_value_that_the_column_cannot_hold_is_refused_by_its_row(
    given: Any, type: str, sqlstate: str
) -> None:
    found = read_column(given, type)
    assert [(each.line, each.column, each.sqlstate) for each in found.rejects] == [(2, "a", sqlstate)]
    assert 2 not in found.lines


REFUSED = [
    (pa.array([1.5]), "int8"),
    (pa.array([1.5]), "text"),
    (pa.array([1]), "bool"),
    (pa.array([TIME]), "timestamptz"),
    (pa.array([TIME.replace(tzinfo=UTC)]), "timestamp"),
    (pa.array([[1]]), "int8[]"),
    (pa.array([{"x": 1}]), "jsonb"),
]


@pytest.mark.parametrize(("given", "type"), REFUSED)
def test_a_column_of_another_sort_is_refused_before_a_row_is_read(given: Any, type: str) -> None:
    with pytest.raises(BadInput, match="but the file has") as found:
        read_column(given, type)
    assert found.value.sqlstate == "42804"


def test_a_column_that_the_file_lacks_is_an_error() -> None:
    with pytest.raises(BadInput, match='column "b" is not in file "f"') as found:
        read_file(written(a=[1]), "int8", "int8", format=Parquet())
    assert found.value.sqlstate == "42703"


def test_row_groups_are_tasks_and_rows_keep_their_numbers() -> None:
    data = written(rows_per_group=3, a=list(range(10)))
    whole, open_input = task(data, "int8", format=Parquet()), memory(f=data)
    ((piece,),) = pieces([whole], open_input)
    found = survey(piece, open_input)
    assert [each.rows for each in found.groups] == [3, 3, 3, 1]
    large = found._replace(groups=tuple(RowGroup(each.rows, SPLIT_BYTES) for each in found.groups))
    tasks = read_tasks([whole], [[large]])
    assert [(each.start, each.end, each.line) for each in tasks] == [
        (0, 1, 1),
        (1, 2, 4),
        (2, 3, 7),
        (3, 4, 10),
    ]
    rows = [row for each in tasks for batch in read(each, open_input) for row in batch.lines.tolist()]
    assert rows == list(range(1, 11))
    assert len(read_tasks([whole], [[found]])) == 1


def test_long_texts_that_stand_for_many_rows_come_in_small_batches() -> None:
    text = "x" * 100_000
    data = written(rows_per_group=1000, a=[text] * 1000)
    assert len(data) < 1_000_000
    batches = list(read(task(data, "text", format=Parquet()), memory(f=data)))
    assert max(batch.table.nbytes for batch in batches) <= parquet_rows.BATCH_BYTES + 200_000
    assert sum(batch.table.num_rows for batch in batches) == 1000


def test_a_field_that_is_too_long_is_refused() -> None:
    found = read_column(pa.array(["x", "y" * 100, None]), "text", limits=FileLimits(field_bytes_max=50))
    assert [(each.line, each.sqlstate) for each in found.rejects] == [(2, "54000")]
    assert found.lines == [1, 3]


def test_files_that_are_damaged_or_too_long_are_refused() -> None:
    data = written(a=list(range(1000)))
    for bad in (b"", b"PAR1", data[:-20], data[:100] + bytes(100) + data[200:]):
        with pytest.raises(BadInput, match="no Parquet file, or is damaged"):
            read_file(bad, "int8", format=Parquet())
    with pytest.raises(BadInput, match="more than 10 rows"):
        read_file(data, "int8", format=Parquet(), limits=FileLimits(rows_max=10))
    with pytest.raises(BadInput, match="more than 1 columns"):
        read_file(written(a=[1], b=[2]), "int8", format=Parquet(), limits=FileLimits(columns_max=1))


def bomb(beside: Any = None, **options: Any) -> bytes:
    """A column whose only page, or dictionary, is zeros: some kilobytes that become 8 MiB."""
    made = io.BytesIO()
    zeros = pa.array(["0" * (2 * MiB)] * 4)
    table = pa.table({"a": zeros} if beside is None else {"a": beside, "b": zeros})
    parquet.write_table(table, made, compression="zstd", data_page_size=1 << 30, **options)
    return made.getvalue()


@pytest.mark.parametrize("is_dictionary", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_count_before_they_are_read(
    is_dictionary: bool, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bomb(use_dictionary=is_dictionary, dictionary_pagesize_limit=1 << 30, data_page_version=version)
    assert len(data) < 20_000
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", lambda *_: pytest.fail("a page was read"))
    with pytest.raises(BadInput, match="more than 200 times") as refused:
        read_file(data, "text", format=Parquet())
    assert refused.value.sqlstate == "54000"


def test_a_page_that_is_too_large_by_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_pages, "PAGE_BYTES_MAX", 1000)
    rng = Random(1)
    data = written(a=[rng.randbytes(100).hex() for _ in range(100)])
    with pytest.raises(BadInput, match="has a page of"):
        read_file(data, "text", format=Parquet())


def test_pages_of_columns_that_are_not_read_do_not_count() -> None:
    data = bomb(beside=pa.array([1, 2, 3, 4]))
    assert read_file(data, "int8", format=Parquet()).lines == [1, 2, 3, 4]
    with pytest.raises(BadInput, match="more than 200 times"):
        read_file(data, "int8", "text", format=Parquet())


def test_a_footer_that_lies_about_its_pages_changes_nothing() -> None:
    """The headers of the pages say how much room is made."""
    data = bomb(use_dictionary=False)
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    sizes = [zigzag(each) for each in sums_of(data)]
    assert all(size in footer for size in sizes)
    for size in sizes:
        footer = footer.replace(
            size, zigzag(1).ljust(len(size) - 1, b"\x80") + b"\0" if len(size) > 1 else size
        )
    with pytest.raises(BadInput):
        read_file(data[: -8 - length] + footer + data[-8:], "text", format=Parquet())


def sums_of(data: bytes) -> list[int]:
    chunk = parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    return [chunk.total_uncompressed_size]


def zigzag(number: int) -> bytes:
    number, made = number * 2, bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


@pytest.mark.hypothesis
@given(st.binary(max_size=60))
def test_bytes_that_are_no_header_are_refused(data: bytes) -> None:
    try:
        page = parquet_pages.read_header(data)
    except (IndexError, ValueError):
        return
    assert min(page) >= 0
