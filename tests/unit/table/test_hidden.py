"""Where keys lie in files: both ways of looking for them, against a naive search."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import CorruptData
from tenure.storage.engine import HEAD_BYTES
from tenure.storage.files import open_files
from tenure.table.lake import format, hidden_rows
from tenure.table.lake import groups as groups_of_files
from tenure.table.lake.checked_files import CheckedFiles, Chunk
from tenure.table.lake.format import schema_of, write
from tenure.table.lake.groups import DecodedGroups
from tenure.table.lake.hidden_rows import HiddenRows, hidden_at
from tenure.table.lake.manifests import File, FileShape

HEAD = b"h" * HEAD_BYTES
SHAPE = FileShape((), is_entries=True)


def _file(directory: Path, keys: list[bytes]) -> tuple[DecodedGroups, File]:
    files = open_files(str(directory))
    times = pa.array([1] * len(keys), pa.int64())
    rows = pa.table(
        [pa.array(keys, pa.binary()), times, pa.array(keys, pa.binary())], schema=schema_of(SHAPE)
    )
    written = write(files, "a.parquet", SHAPE, rows)
    return DecodedGroups(CheckedFiles(files, _damage), SystemEnv(), bytes_max=1 << 20), written.file


def _damage(file: File, wrong: str, chunk: Chunk | None = None) -> CorruptData:
    return CorruptData(f"{file.name} {wrong}")


def _key(number: int) -> bytes:
    """Of several lengths, and with zeros at the end; none is the beginning of another."""
    return b"%03d" % number + b"\0" * (number % 3 == 0) + b"xy" * (number > 40)


def _positions(bits: bytes | None) -> list[int]:
    unpacked = np.unpackbits(np.frombuffer(bits or b"", dtype=np.uint8))
    return [int(each) for each in np.flatnonzero(unpacked)]


@pytest.mark.invariant("hidden-exact")
@pytest.mark.parametrize("few", [0, 1, 10_000])
@pytest.mark.parametrize("longest", [0, 3, 4, 48])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_hidden_from_the_time_on_at_which_their_keys_changed(
    tmp_path: Path, few: int, longest: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(format, "GROUP_ROWS", 7)
    monkeypatch.setattr(hidden_rows, "FEW", few)
    monkeypatch.setattr(hidden_rows, "ARRAY_KEY_BYTES_MAX", longest)
    monkeypatch.setattr(groups_of_files, "ARRAY_KEY_BYTES_MAX", longest)
    rng = random.Random(seed)
    keys = sorted(rng.choices([_key(number) for number in range(60)], k=50))
    groups, file = _file(tmp_path, keys)
    hiding, since = HiddenRows(), dict[bytes, int]()
    for at in range(10, 60, 10):
        changed = {_key(rng.randrange(70)): at + rng.randrange(10) for _ in range(rng.randrange(9))}
        hiding = hiding.with_keys(groups, [file], {HEAD + key: time for key, time in changed.items()})
        since = {**changed, **since}
        for read_at in (5, at - 3, at + 4, at + 9, 100):
            expected = [place for place, key in enumerate(keys) if since.get(key, 1000) <= read_at]
            assert _positions(hidden_at([hiding], file, read_at)) == expected


def test_what_two_hide_is_hidden_by_either(tmp_path: Path) -> None:
    groups, file = _file(tmp_path, [b"a", b"b", b"c"])
    one = HiddenRows().with_keys(groups, [file], {HEAD + b"a": 1})
    other = HiddenRows().with_keys(groups, [file], {HEAD + b"c": 1})
    assert _positions(hidden_at([one, other], file, 5)) == [0, 2]
    assert hidden_at([HiddenRows()], file, 5) is None


def test_keys_that_are_held_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format, "GROUP_ROWS", 7)
    groups, file = _file(tmp_path, [b"%03d" % number for number in range(70)])
    small = DecodedGroups(CheckedFiles(open_files(str(tmp_path)), _damage), SystemEnv(), bytes_max=100)
    for each in (groups, small):
        arrays = each.keys(file, range(10))
        assert b"".join(key for array in arrays for key in array.tolist())[:9] == b"000001002"
    assert groups.held_bytes > 100 >= small.held_bytes
