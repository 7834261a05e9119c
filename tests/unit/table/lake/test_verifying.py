"""What is found to be wrong with the files of a base."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.kv.records import replace
from tenure.table.lake.manifests import File, Manifest
from tenure.table.lake.verifying import verify
from tests.unit.pipeline.lakes import Lake
from tests.unit.table.tables import ID, A, B, table


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path, table())
    yield lake
    lake.close()


@pytest.fixture
def manifest(lake: Lake) -> Manifest:
    """With a live and a past file."""
    _write(lake, lambda writer, txn: [writer.insert(txn, {ID: id, A: id, B: id}) for id in range(5)])
    lake.flush()
    _write(lake, lambda writer, txn: [writer.insert(txn, {ID: 7, A: 7, B: 7})])
    return lake.flush()


def _write(lake: Lake, work: Callable[..., object]) -> None:
    writer = lake.writer()
    lake.write(lambda txn: work(writer, txn))


def _changed(manifest: Manifest, change: Callable[[File], File]) -> Manifest:
    return replace(manifest, live=tuple(map(change, manifest.live)))


def test_nothing_is_wrong_with_what_a_merge_has_made(lake: Lake, manifest: Manifest) -> None:
    assert list(verify(lake.files, manifest)) == []


def test_a_base_of_one_row_is_in_order(lake: Lake) -> None:
    _write(lake, lambda writer, txn: writer.insert(txn, {ID: 1, A: 1, B: 1}))
    assert list(verify(lake.files, lake.flush())) == []


def test_a_file_that_is_gone_is_named(lake: Lake, manifest: Manifest) -> None:
    name = manifest.live[0].name
    lake.files.delete([name])
    assert list(verify(lake.files, manifest)) == [f'live file "{name}" is not there']


def test_a_changed_byte_is_found(lake: Lake, manifest: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "lake" / manifest.live[0].name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (wrong,) = verify(lake.files, manifest)
    assert "is not what was written" in wrong


def test_rows_and_bounds_that_the_manifest_has_otherwise_are_found(lake: Lake, manifest: Manifest) -> None:
    more = _changed(manifest, lambda file: replace(file, rows=file.rows + 1))
    assert "rows, not" in next(verify(lake.files, more))
    lower = _changed(manifest, lambda file: replace(file, first=b""))
    assert "other bounds" in next(verify(lake.files, lower))
