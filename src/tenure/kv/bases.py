"""Bases: rows of an index that are no longer in the store but in the lake, as far as reads must know.

    visible at T  =  what the store has of a key, a tombstone too,  over  what the base has at T

A revision above the cleaned mark that the store shows as visible at T is the truth, whether it was flushed
already or not. What lies below the mark may be gone, or replaced by what was merged in: there the base says
whether there is a row. The base in hand may be older than the newest: each piece of the store is read with
the mark in one snapshot, and if the mark is above what the base is complete up to (`flushed_at`), that piece
starts over with the newest base at the same T.

Invariant (base-exact): a read at T gives the rows that were visible at T, wherever flushing and cleaning
have put them meanwhile.

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
"""Keys per engine call: enough to make the call's cost vanish."""

Row: TypeAlias = tuple[bytes, bytes]
"""A key and its value."""


class Base(Protocol):
    """What the lake has of one index. Raises BaseMoved if a file is gone: there is a newer base then."""

    @property
    def flushed_at(self) -> Timestamp:
        """All revisions up to here are in it."""
        ...

    def get(self, key: bytes, at: Timestamp) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes]:
        """The values of those keys that have a row; each part of a file is read once."""
        ...

    def page(self, span: Span, at: Timestamp, limit: int, *, reverse: bool) -> list[Row]:
        """The first rows of a span, or the last ones: fewer than `limit` only if there are no more."""
        ...

    def rows_within(self, span: Span) -> int:
        """At least so many of its rows lie in a span: cheap, for planning."""
        ...

    @property
    def described(self) -> str:
        """How large it is, in words."""
        ...


class Bases(Protocol):
    def of(self, head: bytes) -> Base | None:
        """The base of an index as far as this node knows: in memory, and maybe not the newest."""
        ...

    def newer(self, head: bytes, base: Base | None) -> Base:
        """The newest base, as the store says; raises CorruptData if that is the one that did not do."""
        ...


class NoBases:
    """Of a store without a lake."""

    def of(self, head: bytes) -> Base | None:
        return None

    def newer(self, head: bytes, base: Base | None) -> Base:
        raise BaseMoved("rows have moved to a lake that this process does not know")


NO_BASES = NoBases()


def with_base(bases: Bases, head: bytes, read: Callable[[Base | None], T]) -> T:
    """Reads a piece with the base in hand, and starts over with a newer one if that is too old."""
    base = bases.of(head)
    while True:
        try:
            return read(base)
        except BaseMoved:
            base = bases.newer(head, base)


Accept: TypeAlias = Callable[[ReadResult, Timestamp], Timestamp]
"""Judges an answer by its marks, given how far the base goes; returns the time that is read at."""


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
    """As `get`, of several keys: those of a head together."""
    by_head: dict[bytes, list[bytes]] = {}
    for key in keys:
        by_head.setdefault(key[:HEAD_BYTES], []).append(key)
    values: dict[bytes, bytes | None] = {}
    for head, wanted in by_head.items():
        for first in range(0, len(wanted), KEYS_AT_ONCE):
            batch = wanted[first : first + KEYS_AT_ONCE]
            values |= with_base(bases, head, partial(_get_batch, engine, keyspace, batch, at, accept))
    return values


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
    based = {} if base is None or not missing else base.get_many(missing, read_at)
    return values | {key: based.get(key) for key in missing}


class Page(NamedTuple):
    """Some rows of a span, and the part of it that they answer for."""

    rows: Mapping[bytes, bytes | None]
    """In order; without a value where the row is gone."""
    answered: Span


def pages(
    engine: Engine,
    keyspace: Keyspace,
    bases: Bases,
    span: Span,
    at: Callable[[], Timestamp | None],
    asked: int,
    accept: Accept,
    *,
    reverse: bool,
) -> Iterator[Page]:
    """Yields a span's visible rows, so many a page.

    Each page is an engine snapshot of its own; `at` says anew for each at which time to read.
    """
    assert keyspace.owns_span(span), "a span of another tenant"
    head = span.lo[:HEAD_BYTES]
    guard = keyspace.guard(span)
    left = span

    def read(base: Base | None) -> Page:
        found = engine.scan(
            Scan(left.lo, left.hi, guard, at(), limit=asked, reverse=reverse, tombstones=base is not None)
        )
        read_at = accept(found, ZERO_AT if base is None else base.flushed_at)
        stored = _answered(left, [revision.key for revision in found.revisions], asked, reverse)
        rows = {key: value for key, at, value in found.revisions if at > found.cleaned_at}
        if base is None:
            return Page(rows, stored)
        return _laid_over(rows, stored, base.page(left, read_at, asked, reverse=reverse), asked, reverse)

    while True:
        page = with_base(bases, head, read)
        yield page
        if page.answered == left:
            return
        left = Span(left.lo, page.answered.lo) if reverse else Span(page.answered.hi, left.hi)


def merged(page: Page, laid_over: Mapping[bytes, bytes | None], *, reverse: bool) -> list[Row]:
    """A page's rows with what lies over the store: a value of None is a row that is gone."""
    rows = [(key, value) for key, value in {**page.rows, **laid_over}.items() if value is not None]
    return sorted(rows, reverse=reverse) if laid_over else rows


def _laid_over(
    stored: dict[bytes, bytes | None], span: Span, based: list[Row], asked: int, reverse: bool
) -> Page:
    """The store's rows, which answer for a span, over the base's, as far as those answer."""
    answered = _answered(span, [key for key, _ in based if span.lo <= key < span.hi], asked, reverse)
    rows = {**dict(based), **stored}
    keys = sorted((key for key in rows if answered.lo <= key < answered.hi), reverse=reverse)
    return Page({key: rows[key] for key in keys}, answered)


def _answered(span: Span, keys: list[bytes], asked: int, reverse: bool) -> Span:
    """The part of a span that so many keys answer for, if so many were asked for."""
    if len(keys) < asked:
        return span
    return Span(keys[-1], span.hi) if reverse else Span(span.lo, keys[-1] + b"\0")
