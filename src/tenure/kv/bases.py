"""Bases: the rows of an index that moved from the store to the lake, as far as reads must know them.

    visible at T  =  the store's row of a key, a tombstone too,  over  the base's row at T

A revision above the cleaned mark that is visible in the store at T is correct, whether it was flushed already
or not. Below the mark a revision may be gone, or replaced by a merge: there the base decides whether there is
a row. The cached base may be older than the newest. So each piece of the store is read with the mark in one
snapshot, and if the mark is above the base's `flushed_at`, that piece starts over with the newest base at the
same T.

Invariant (base-exact): a read at T gives the rows that were visible at T, regardless of flushes and cleanings
since.

Walk: `kv.store_reads` and `kv.snapshot` read with these; `table.lake` has the bases.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from tenure.base.errors import BaseMoved
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.keys import Keyspace, Span
from tenure.storage.engine import HEAD_BYTES, Engine, ReadResult, Scan

T = TypeVar("T")

KEYS_AT_ONCE = 1_000
"""Keys per engine call: enough to make the cost of the call negligible."""

Row: TypeAlias = tuple[bytes, bytes]
"""A key and its value."""


class Base(Protocol):
    """The lake's rows of one index. Raises BaseMoved if a file is gone: there is a newer base then."""

    @property
    def flushed_at(self) -> Timestamp:
        """The base contains all revisions up to this time."""
        ...

    def get(self, key: bytes, at: Timestamp) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes]:
        """The values of those keys that have a row; each row group of a file is read once."""
        ...

    def present(self, keys: Sequence[bytes], at: Timestamp) -> set[bytes]:
        """Those of the keys that have a row; no values are made."""
        ...

    def page(self, span: Span, at: Timestamp, limit: int, *, reverse: bool) -> list[Row]:
        """The first rows of a span, or the last ones: fewer than `limit` only if there are no more."""
        ...

    def rows_within(self, span: Span) -> int:
        """A lower bound of the number of its rows in a span: cheap, for planning."""
        ...

    @property
    def described(self) -> str:
        """Its size, in words."""
        ...


class Bases(Protocol):
    def of(self, head: bytes) -> Base | None:
        """The base of an index that this node has in memory, which may not be the newest."""
        ...

    def newer(self, head: bytes, base: Base | None) -> Base:
        """The newest base according to the store; raises CorruptData if that is the one that was too old."""
        ...


class NoBases:
    """The bases of a store without a lake."""

    def of(self, head: bytes) -> Base | None:
        return None

    def newer(self, head: bytes, base: Base | None) -> Base:
        raise BaseMoved("rows have moved to a lake that this process does not know")


NO_BASES = NoBases()


def with_base(bases: Bases, head: bytes, read: Callable[[Base | None], T]) -> T:
    """Reads a piece with the cached base, and starts over with a newer one if that is too old."""
    base = bases.of(head)
    while True:
        try:
            return read(base)
        except BaseMoved:
            base = bases.newer(head, base)


Accept: TypeAlias = Callable[[ReadResult, Timestamp], Timestamp]
"""Checks an answer against its marks, given the base's `flushed_at`; returns the read time."""


def get(
    engine: Engine,
    keyspace: Keyspace,
    bases: Bases,
    key: bytes,
    at: Callable[[], Timestamp | None],
    accept: Accept,
) -> bytes | None:
    guard = keyspace.point_guard(key)

    def read(base: Base | None) -> bytes | None:
        found = engine.get(key, guard, at())
        read_at = accept(found, ZERO_AT if base is None else base.flushed_at)
        if found.revisions and found.revisions[0].at > found.cleaned_at:
            return found.revisions[0].value
        return None if base is None else base.get(key, read_at)

    return with_base(bases, key[:HEAD_BYTES], read)


def get_many(
    engine: Engine,
    keyspace: Keyspace,
    bases: Bases,
    keys: Iterable[bytes],
    at: Callable[[], Timestamp | None],
    accept: Accept,
) -> dict[bytes, bytes | None]:
    """As `get`, for several keys: those of one head together."""
    values: dict[bytes, bytes | None] = {}
    for head, batch in _batches(keys):
        values |= with_base(bases, head, partial(_get_batch, engine, keyspace, batch, at, accept))
    return values


def present(
    engine: Engine,
    keyspace: Keyspace,
    bases: Bases,
    keys: Iterable[bytes],
    at: Callable[[], Timestamp | None],
    accept: Accept,
) -> set[bytes]:
    """Those of several keys that have a row."""
    found: set[bytes] = set()
    for head, batch in _batches(keys):
        found |= with_base(bases, head, partial(_present_of, engine, keyspace, batch, at, accept))
    return found


def _batches(keys: Iterable[bytes]) -> Iterator[tuple[bytes, list[bytes]]]:
    """Keys of one head, with the head: no more than are read by one call."""
    by_head: dict[bytes, list[bytes]] = {}
    for key in keys:
        by_head.setdefault(key[:HEAD_BYTES], []).append(key)
    for head, wanted in by_head.items():
        for first in range(0, len(wanted), KEYS_AT_ONCE):
            yield head, wanted[first : first + KEYS_AT_ONCE]


def _present_of(
    engine: Engine,
    keyspace: Keyspace,
    keys: Sequence[bytes],
    at: Callable[[], Timestamp | None],
    accept: Accept,
    base: Base | None,
) -> set[bytes]:
    found = engine.get_many(keys, keyspace.point_guard(keys[0]), at())
    read_at = accept(found, ZERO_AT if base is None else base.flushed_at)
    newer = {key: value for key, written_at, value in found.revisions if written_at > found.cleaned_at}
    rows = {key for key, value in newer.items() if value is not None}
    missing = [key for key in keys if key not in newer]
    return rows if base is None or not missing else rows | base.present(missing, read_at)


def _get_batch(
    engine: Engine,
    keyspace: Keyspace,
    keys: Sequence[bytes],
    at: Callable[[], Timestamp | None],
    accept: Accept,
    base: Base | None,
) -> dict[bytes, bytes | None]:
    found = engine.get_many(keys, keyspace.point_guard(keys[0]), at())
    read_at = accept(found, ZERO_AT if base is None else base.flushed_at)
    values = {key: value for key, written_at, value in found.revisions if written_at > found.cleaned_at}
    missing = [key for key in keys if key not in values]
    base_rows = {} if base is None or not missing else base.get_many(missing, read_at)
    return values | {key: base_rows.get(key) for key in missing}


class Page(NamedTuple):
    """Some rows of a span, and the part of the span that they cover."""

    rows: Mapping[bytes, bytes | None]
    """In key order; the value is None where the row is deleted."""
    answered: Span


def pages(
    engine: Engine,
    keyspace: Keyspace,
    bases: Bases,
    span: Span,
    at: Callable[[], Timestamp | None],
    rows_wanted: int,
    accept: Accept,
    *,
    reverse: bool,
) -> Iterator[Page]:
    """Yields a span's visible rows, so many a page.

    Each page is an engine snapshot of its own; `at` is called for each and returns its read time.
    """
    assert keyspace.owns_span(span), "a span of another tenant"
    head = span.lo[:HEAD_BYTES]
    guard = keyspace.guard(span)
    left = span

    def read(base: Base | None) -> Page:
        found = engine.scan(
            Scan(
                left.lo, left.hi, guard, at(), limit=rows_wanted, reverse=reverse, tombstones=base is not None
            )
        )
        read_at = accept(found, ZERO_AT if base is None else base.flushed_at)
        stored = _answered(left, [revision.key for revision in found.revisions], rows_wanted, reverse)
        rows = {key: value for key, at, value in found.revisions if at > found.cleaned_at}
        if base is None:
            return Page(rows, stored)
        return _laid_over(
            rows, stored, base.page(left, read_at, rows_wanted, reverse=reverse), rows_wanted, reverse
        )

    while True:
        page = with_base(bases, head, read)
        yield page
        if page.answered == left:
            return
        left = Span(left.lo, page.answered.lo) if reverse else Span(page.answered.hi, left.hi)


def merged(page: Page, laid_over: Mapping[bytes, bytes | None], *, reverse: bool) -> list[Row]:
    """A page's rows with uncommitted rows over them: a value of None is a deleted row."""
    rows = [(key, value) for key, value in {**page.rows, **laid_over}.items() if value is not None]
    return sorted(rows, reverse=reverse) if laid_over else rows


def _laid_over(
    stored: dict[bytes, bytes | None], span: Span, base_rows: list[Row], rows_wanted: int, reverse: bool
) -> Page:
    """The store's rows, which cover a span, over the base's, as far as those cover it."""
    answered = _answered(
        span, [key for key, _ in base_rows if span.lo <= key < span.hi], rows_wanted, reverse
    )
    rows = {**dict(base_rows), **stored}
    keys = sorted((key for key in rows if answered.lo <= key < answered.hi), reverse=reverse)
    return Page({key: rows[key] for key in keys}, answered)


def _answered(span: Span, keys: list[bytes], rows_wanted: int, reverse: bool) -> Span:
    """The part of a span that these keys cover, if so many were requested."""
    if len(keys) < rows_wanted:
        return span
    return Span(keys[-1], span.hi) if reverse else Span(span.lo, keys[-1] + b"\0")
