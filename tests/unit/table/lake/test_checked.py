"""Files that are damaged byte by byte: whoever reads them gets the right rows or an error, never others."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tenure.base.errors import BaseMoved, CorruptData
from tenure.kv.records import replace
from tenure.pipeline import merge as merging
from tenure.pipeline import merge_tasks, remote_handles
from tenure.pipeline.scan import scanned
from tenure.sql.duck.offload import Duck
from tenure.table.lake import checked_files, format
from tenure.table.lake.checked_files import CheckedFiles
from tenure.table.lake.chunk_sums import Chunks
from tenure.table.lake.damage import damage_in
from tenure.table.lake.manifests import File
from tenure.table.read import rows
from tests.unit.pipeline.histories import KEYS, NOTE, History, first_version
from tests.unit.pipeline.lakes import Lake
from tests.unit.pipeline.test_scan import planned, shown
from tests.unit.sql.duck.asked_tables import AskedTable
from tests.unit.table.tables import ID, B

STRIDE = 11
"""Every so many bytes one is changed: so all chunks, page headers and the footer are met."""

Reading = Callable[[], object]


class World:
    """A base with live and past files, of several row groups and shapes; and ways to read it."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.duck = Duck(lake.store, lake=lake.files)
        self.history = History(lake, 1)
        for _ in range(3):
            self.history.write(40)
        lake.flush()
        self.history.add_column()
        self.history.write(30)
        lake.flush()
        lake.clean()
        lake.bases.load()
        self._added = KEYS
        self.now, self.before = self.history.times[-1], self.history.times[1]
        self.answers = {name: read() for name, read in self.readings.items()}

    def close(self) -> None:
        self.duck.close()

    @property
    def readings(self) -> dict[str, Reading]:
        return {
            "by key": self._by_key,
            "by rows": lambda: self._rows(self.now),
            "by rows, before": lambda: self._rows(self.before),
            "scan": lambda: self._scan(self.now),
            "scan, before": lambda: self._scan(self.before),
            "scan of changes": lambda: self._scan(self.now, since_at=self.before, revisions="all"),
            "duckdb": lambda: self._by_duck(self.now),
            "duckdb, before": lambda: self._by_duck(self.before),
        }

    def _by_key(self) -> list[bytes | None]:
        layout, snapshot = self.lake.layout, self.lake.store.snapshot()
        return [snapshot.get(layout.key({ID: id})) for id in range(60)]

    def _rows(self, at: int) -> list[str]:
        layout = self.lake._layouts.of(self.history.version(at))
        return [str(row) for row in rows(self.lake.store.snapshot(at), layout)]

    def _scan(self, at: int, **asked: Any) -> list[str]:
        return shown(self.history, at, scanned(planned(self.lake, self.history, at, **asked)))

    def _by_duck(self, at: int) -> object:
        asked = AskedTable(self.lake, self.duck, self.history.version(at))
        return asked.by_duck(self.lake.store.snapshot(at), ID, B)

    def forget(self) -> None:
        """As a process does that has just been started."""
        for base in self.lake.bases.bases():
            base.groups.forget()
        self.lake.bases.checked.forget()
        remote_handles.opened(self.lake.place).checked.forget()

    def add(self) -> None:
        """A row after all others."""
        self._added += 1
        self.lake.write(lambda txn: self.lake.writer().insert(txn, {ID: self._added, NOTE: "new"}))

    def merged(self) -> object:
        """A merge that takes all files in; nothing of it is published."""
        self.add()
        version = remote_handles.TableVersion(self.lake.table, ())
        request = merging.MergeRequest(version, self.lake.manifest(), self.lake.store.snapshot().at)
        return merging.merge(self.lake.store, self.lake.place, [request], self.lake._run)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(format, "GROUP_ROWS", 16)
    lake = Lake(tmp_path, first_version())
    world = World(lake)
    yield world
    world.close()
    lake.close()


class Damaged(NamedTuple):
    file: File
    what: str
    data: bytes


def flips(
    world: World, tmp_path: Path, stride: int = STRIDE, before: Callable[[], object] = lambda: None
) -> Iterator[Damaged]:
    """Files with one bit that is not what it was, each in place as long as it is looked at.

    `before` is done with the files as they should be.
    """
    for file in world.lake.manifest().files:
        path = tmp_path / "lake" / file.name
        right = path.read_bytes()
        for place in range(0, len(right), stride):
            before()
            wrong = bytearray(right)
            wrong[place] ^= 1 << place % 8
            path.write_bytes(wrong)
            yield Damaged(file, f"byte {place}", bytes(wrong))
            path.write_bytes(right)


def wrongs(world: World, damaged: Damaged) -> list[str]:
    """Readings that give neither the right rows nor the right error."""
    found = []
    for name, read in world.readings.items():
        world.forget()
        try:
            if read() != world.answers[name]:
                found.append(f"{damaged.what} of {damaged.file.name}, {name}: other rows")
        except CorruptData as error:
            if not str(error).startswith(f'file "{damaged.file.name}" of table 200, index 1 '):
                found.append(f"{damaged.what}, {name}: {error}")
        except Exception as error:
            found.append(f"{damaged.what}, {name}: {type(error).__name__}: {error}")
    return found


@pytest.mark.invariant("checked")
@pytest.mark.parametrize("step_bytes", [149, pytest.param(37, marks=pytest.mark.longer)])
def test_no_reading_of_a_damaged_file_gives_other_rows(world: World, tmp_path: Path, step_bytes: int) -> None:
    assert [wrong for damaged in flips(world, tmp_path, step_bytes) for wrong in wrongs(world, damaged)] == []
    world.forget()
    assert {name: read() for name, read in world.readings.items()} == world.answers


def test_every_byte_of_a_file_but_its_first_four_is_checked(world: World, tmp_path: Path) -> None:
    """Those are Parquet's mark, and nobody reads them."""
    for damaged in flips(world, tmp_path):
        files = CheckedFiles(world.lake.files, damage_in(world.lake.store))
        if damaged.what == "byte 0":
            files.read_groups(damaged.file, range(len(files.footer(damaged.file).firsts)))
            continue
        with pytest.raises(CorruptData, match=f'^file "{damaged.file.name}" of table 200, index 1 has '):
            files.read_groups(damaged.file, range(len(files.footer(damaged.file).firsts)))


@pytest.mark.invariant("checked-merge")
def test_a_merge_takes_no_damaged_file_in_even_if_it_was_right_when_it_was_read(
    world: World, tmp_path: Path
) -> None:
    live = {file.name for file in world.lake.manifest().live}
    for damaged in flips(world, tmp_path, 97, before=world.merged):
        if damaged.file.name in live and damaged.what != "byte 0":
            with pytest.raises(CorruptData, match=damaged.file.name):
                world.merged()


@pytest.mark.parametrize("size", [0, 3, 4, 100, -1, -9, 1])
def test_a_file_that_is_too_short_or_too_long_is_damaged(world: World, tmp_path: Path, size: int) -> None:
    """By so many bytes from its start or its end; the last is one that something was appended to."""
    for file in world.lake.manifest().files:
        path = tmp_path / "lake" / file.name
        right = path.read_bytes()
        data = right + b"x" if size == 1 else right[:size]
        path.write_bytes(data)
        assert wrongs(world, Damaged(file, f"{size} bytes", data)) == []
        with pytest.raises(CorruptData, match=f"has {len(data)} bytes, not {len(right)}"):
            CheckedFiles(world.lake.files, damage_in(world.lake.store)).footer(file)
        path.write_bytes(right)


def test_a_missing_file_is_named(world: World, tmp_path: Path) -> None:
    for file in world.lake.manifest().files:
        path = tmp_path / "lake" / file.name
        right = path.read_bytes()
        path.unlink()
        assert wrongs(world, Damaged(file, "all", b"")) == []
        world.forget()
        if file in world.lake.manifest().live:
            with pytest.raises(CorruptData, match=f'file "{file.name}" of table 200, index 1 is missing'):
                world._rows(world.now)
            with pytest.raises(CorruptData, match="is missing"):
                world.merged()
        path.write_bytes(right)


def test_what_is_left_is_said(world: World, tmp_path: Path) -> None:
    file = world.lake.manifest().live[0]
    (tmp_path / "lake" / file.name).write_bytes(b"")
    world.forget()
    with pytest.raises(CorruptData) as caught:
        world._rows(world.now)
    others = len(world.lake.manifest().files) - 1
    assert f"{others} other files of the index are not affected" in caught.value.detail
    assert "is in the store." in caught.value.detail
    assert "Files that merges have replaced are there until they are deleted" in caught.value.detail
    assert "DROP TABLE work" in caught.value.hint


def test_a_reader_with_an_old_manifest_starts_over_when_a_file_is_damaged(world: World) -> None:
    (*_, file) = world.lake.manifest().live
    world.add()
    world.lake.flush()
    files = CheckedFiles(world.lake.files, damage_in(world.lake.store))
    with pytest.raises(BaseMoved):
        files.check(replace(file, tail_checksum=b"another"), [])


# ── files of earlier versions ──────────────────────────────────────────────────────────────────


def test_a_file_without_sums_is_checked_whole(world: World, tmp_path: Path) -> None:
    manifest = world.lake.manifest()
    older = _without_sums(world, tmp_path)
    world.lake.write(
        lambda txn: world.lake.manifests.put(
            txn,
            replace(
                manifest,
                live=tuple(older[file.name] for file in manifest.live),
                past=tuple(older[file.name] for file in manifest.past),
            ),
        )
    )
    world.lake.bases.load()
    world.forget()
    assert {name: read() for name, read in world.readings.items()} == world.answers
    world.merged()
    for damaged in flips(world, tmp_path, 211):
        assert wrongs(world, damaged) == []
        with pytest.raises(CorruptData, match="has other bytes than were written"):
            CheckedFiles(world.lake.files, damage_in(world.lake.store)).footer(damaged.file)


def _without_sums(world: World, tmp_path: Path) -> dict[str, File]:
    """The base's files as an earlier version would have written them."""
    older = {}
    for file in world.lake.manifest().files:
        path = tmp_path / "lake" / file.name
        data = path.read_bytes()
        footer = pq.read_metadata(pa.BufferReader(data)).serialized_size + 8
        whole = data[: len(data) - file.tail_size] + data[-footer:]
        path.write_bytes(whole)
        sum = format.checksum(whole)
        older[file.name] = replace(file, size=len(whole), checksum=sum, tail_size=0, tail_checksum=b"")
    return older


# ── what is remembered ─────────────────────────────────────────────────────────────────────────


class _Counted:
    """Files that count the bytes that are read of them."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.reading, self.exists = files.reading, files.exists
        self.arrow = self
        self.opened = 0

    def open_input_file(self, name: str) -> Any:
        self.opened += 1
        return self._files.arrow.open_input_file(name)


def test_columns_that_were_checked_are_not_read_again(world: World) -> None:
    files = _Counted(world.lake.files)
    checking = CheckedFiles(files, damage_in(world.lake.store))  # type: ignore[arg-type]
    file = world.lake.manifest().live[0]
    checking.check(file, ["c1", "c2"])
    before = files.opened
    checking.check(file, ["c2", "c1"])
    assert files.opened == before
    checking.check(file, ["c3"])
    assert files.opened == before + 1


def test_a_check_can_be_given_up_between_reads(world: World) -> None:
    checking = CheckedFiles(world.lake.files, damage_in(world.lake.store))

    def proceed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checking.check(world.lake.manifest().live[0], ["c1"], proceed)


def test_a_file_that_was_right_and_cannot_be_decoded_any_more_is_damaged(
    world: World, tmp_path: Path
) -> None:
    file = world.lake.manifest().live[0]
    files = CheckedFiles(world.lake.files, damage_in(world.lake.store))
    groups = range(len(files.footer(file).firsts))
    files.read_groups(file, groups)
    path = tmp_path / "lake" / file.name
    path.write_bytes(b"\xff" * file.size)
    with pytest.raises(CorruptData, match="has another footer"):
        files.read_groups(file, groups)


# ── mistakes ───────────────────────────────────────────────────────────────────────────────────


class _Alike(bytes):
    """A checksum that is always right."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


MISTAKES: dict[str, tuple[object, str, object]] = {
    "sums of chunks not compared": (Chunks, "is_intact", lambda *_: True),
    "footer not compared": (checked_files, "checksum", lambda *_: _Alike()),
    "columns not checked before DuckDB reads them": (CheckedFiles, "check", lambda *_: None),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_checking_is_found(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    owner, attribute, wrong = MISTAKES[name]
    monkeypatch.setattr(owner, attribute, wrong)
    sizes = {file.name: file.size - file.tail_size for file in world.lake.manifest().files}
    is_of_tail = name == "footer not compared"
    hunted = (
        damaged
        for damaged in flips(world, tmp_path, 3)
        if not is_of_tail or int(damaged.what.split()[1]) > sizes[damaged.file.name]
    )
    assert any(wrongs(world, damaged) for damaged in hunted)


def test_a_merge_that_does_not_verify_is_found(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = remote_handles.opened(world.lake.place)
    monkeypatch.setattr(merge_tasks, "CheckedFiles", lambda files, damage: opened.checked)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_a_merge_takes_no_damaged_file_in_even_if_it_was_right_when_it_was_read(world, tmp_path)
