"""Readers that pause while rows and files move under them: at their time, nothing has changed."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tenure.base.timestamp import Timestamp
from tenure.kv.bases import Base, Row
from tenure.kv.keys import Span
from tenure.kv.transaction import Transaction
from tenure.table.lake.base import LakeBase
from tests.unit.pipeline.lakes import Lake
from tests.unit.table.tables import ID, A, B, table

IDS = range(40)


class Pausing:
    """The lake's bases, with something that happens once: before the store is read, or before the base is."""

    def __init__(self, lake: Lake, between: Callable[[], None], *, before: str) -> None:
        self._lake = lake
        self._between: Callable[[], None] | None = between
        self._before = before

    def pause(self, before: str) -> None:
        between = self._between
        if between is not None and before == self._before:
            self._between = None
            between()

    def of(self, head: bytes) -> "Paused | None":
        base = self._lake.bases.of(head)
        if base is None:
            return None
        self.pause("store")
        return Paused(self, base)

    def newer(self, head: bytes, base: Base | None) -> "Paused":
        return Paused(self, self._lake.bases.newer(head, base))


class Paused:
    def __init__(self, bases: Pausing, base: LakeBase) -> None:
        self._bases = bases
        self._base = base
        self.manifest = base.manifest
        self.flushed_at = base.flushed_at

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        self._bases.pause("base")
        return self._base.get(key, at)

    def present(self, keys: Sequence[bytes], at: Timestamp) -> set[bytes]:
        self._bases.pause("base")
        return self._base.present(keys, at)

    def get_many(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes]:
        self._bases.pause("base")
        return self._base.get_many(keys, at)

    def page(self, span: Span, at: Timestamp, limit: int, *, reverse: bool) -> list[Row]:
        self._bases.pause("base")
        return self._base.page(span, at, limit, reverse=reverse)

    def rows_within(self, span: Span) -> int:
        return self._base.rows_within(span)

    @property
    def described(self) -> str:
        return self._base.described


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Its rows are in a base, and nowhere else."""
    lake = Lake(tmp_path, table(), cache_bytes=1)
    _write(lake, lambda writer, txn: [writer.insert(txn, {ID: id, A: id, B: id}) for id in IDS])
    _move(lake)
    yield lake
    lake.close()


def _write(lake: Lake, work: Callable[..., object]) -> None:
    writer = lake.writer()
    lake.write(lambda txn: work(writer, txn))


def _move(lake: Lake) -> None:
    """Flushes, cleans, and deletes at once what no manifest names any more."""
    lake.flush()
    lake.clean()
    lake.files.delete([file.name for file in lake.manifests.dropped(lake.store.snapshot())])


def _change_and_move(lake: Lake) -> None:
    keyspace = lake.store.keyspace

    def work(txn: Transaction) -> None:
        for key, value in list(txn.scan(keyspace.index_span(lake.table.id)))[::2]:
            if key[-1] % 4:
                txn.put(key, value[:-1] + b"\x7f")
            else:
                txn.delete(key)

    lake.write(work)
    _move(lake)


def _get(source: Any, span: Span, keys: list[bytes]) -> dict[bytes, bytes | None]:
    return {key: source.get(key) for key in keys}


def _scan(source: Any, span: Span, keys: list[bytes]) -> dict[bytes, bytes | None]:
    return dict.fromkeys(keys) | dict(source.scan(span))


def _backwards(source: Any, span: Span, keys: list[bytes]) -> dict[bytes, bytes | None]:
    return dict.fromkeys(keys) | dict(source.scan(span, reverse=True))


def _together(source: Any, span: Span, keys: list[bytes]) -> dict[bytes, bytes | None]:
    source.read_ahead(keys)
    return _get(source, span, keys)


@pytest.mark.invariant("base-exact")
@pytest.mark.parametrize("before", ["store", "base"])
@pytest.mark.parametrize("read", [_get, _scan, _backwards, _together])
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_reader_that_pauses_while_rows_move_sees_its_own_time(
    lake: Lake, before: str, read: Callable[..., dict[bytes, bytes | None]], in_transaction: bool
) -> None:
    span = lake.store.keyspace.index_span(lake.table.id)
    expected = dict(lake.store.snapshot().scan(span))
    assert len(expected) == len(IDS)
    happened: list[bool] = []

    def between() -> None:
        lake.store.use_bases(lake.bases)
        _change_and_move(lake)
        happened.append(True)

    lake.store.use_bases(Pausing(lake, between, before=before))
    source: Any = lake.store.begin() if in_transaction else lake.store.snapshot()
    if in_transaction:
        source.get(lake.store.keyspace.key(300, [1]))  # it reads as of now, whatever comes
    assert read(source, span, list(expected)) == expected
    assert happened
    assert dict(lake.store.snapshot().scan(span)) != expected


@pytest.mark.invariant("base-at")
@pytest.mark.parametrize("wanted", [1, 3, 8, len(IDS)])
def test_many_keys_are_found_as_each_is_at_every_time(lake: Lake, wanted: int) -> None:
    head = lake.store.keyspace.head(lake.table.id, 1)
    times = [lake.store.snapshot().at]
    keys = [key for key, _ in lake.store.snapshot().scan(lake.store.keyspace.index_span(lake.table.id))]
    for _ in range(2):
        _change_and_move(lake)
        times.append(lake.store.snapshot().at)
    base = lake.bases.newer(head, None)
    missing = [head, keys[0] + b"\0", keys[-1] + b"\0", head + b"\xff"]
    for at in times:
        for first in range(0, len(keys), wanted):
            asked = [*keys[first : first + wanted], *missing]
            each = {key: base.get(key, at) for key in asked}
            assert base.get_many(asked[::-1], at) == {k: v for k, v in each.items() if v is not None}
            assert base.present(asked[::-1], at) == {k for k, v in each.items() if v is not None}


@pytest.mark.invariant("base-exact")
@pytest.mark.parametrize("read", [_get, _scan, _backwards, _together])
def test_what_went_at_the_very_time_of_a_flush_is_there_right_before_it(
    lake: Lake, read: Callable[..., dict[bytes, bytes | None]]
) -> None:
    span = lake.store.keyspace.index_span(lake.table.id)
    expected = dict(lake.store.snapshot().scan(span))
    gone_at = lake.write(lambda txn: [txn.delete(key) for key in expected])
    assert lake.flush(until_at=gone_at).flushed_at == gone_at
    lake.clean()
    assert read(lake.store.snapshot(gone_at - 1), span, list(expected)) == expected
    assert read(lake.store.snapshot(gone_at), span, list(expected)) == dict.fromkeys(expected)
