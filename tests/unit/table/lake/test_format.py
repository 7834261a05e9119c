"""How files of the lake are written."""

import hashlib
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tenure.base.errors import CorruptData
from tenure.storage.files import Files, open_files
from tenure.table.lake.checked_files import CheckedFiles, Chunk
from tenure.table.lake.format import GROUP_ROWS, checksum, has_checksum, schema_of, write
from tenure.table.lake.manifests import File, FileColumn, FileShape
from tests.unit.table.tables import INT

SHAPE = FileShape((FileColumn(1, INT, is_in_key=True), FileColumn(2, INT, is_in_key=False)))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return open_files(str(tmp_path))


def _damage(file: File, wrong: str, chunk: Chunk | None = None) -> CorruptData:
    return CorruptData(f"{file.name} {wrong}")


def rows(count: int, noise: Random) -> Any:
    """Column 1 counts; column 2 is as nothing could compress it."""
    keys = [number.to_bytes(4) for number in range(count)]
    numbers = [noise.getrandbits(63) for _ in range(count)]
    columns = [keys, [None] * count, list(range(count)), numbers, [None] * count]
    schema = schema_of(SHAPE)
    return pa.table([pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema)


def test_a_column_that_hardly_becomes_smaller_is_not_compressed(files: Files) -> None:
    table = rows(2 * GROUP_ROWS, Random(1))
    written = write(files, "1/a.parquet", SHAPE, table)
    checked = CheckedFiles(files, _damage)
    group = checked.footer(written.file).metadata.row_group(1)
    found = {group.column(place).path_in_schema: group.column(place).compression for place in range(4)}
    assert (found["key"], found["c1"], found["c2"]) == ("SNAPPY", "SNAPPY", "UNCOMPRESSED")
    assert checked.read_groups(written.file, [0, 1]).equals(table)


def test_the_checksum_of_a_file_of_an_earlier_version_is_known() -> None:
    data = b"rows"
    older = hashlib.blake2b(data, digest_size=16).digest()
    assert has_checksum(data, checksum(data)) and has_checksum(data, older)
    assert not has_checksum(b"others", checksum(data)) and not has_checksum(b"others", older)
