"""Scanning an index: the rows visible at a time, or the changes between two times, as columns.

    request                rows
    visible at T           one per row that exists at T
    newest since S         one per key that changed in (S, T]: its state at T, or its deletion
    all since S            one per revision in (S, T], a deletion among them

    base, F <= T   live files without the keys that the store has newer   + delta (F, T]
    base, T < F    live and past files alone, by at and until
    changes        revisions that began in (S, T]; and ends there without a new beginning: deletions

A span is read piece by piece, so memory is bounded by a piece. A piece of delta comes with the cleaned mark
of the same snapshot of the store: if that is above F, or if a file is gone, the rest of the span is planned
again with the newest manifest at the same T. So rows that were returned before need not be returned again.

Columns are those of one version of the table, `c<id>` in the types of `table.arrow`; `odd` has, packed by
column id, the values that these cannot represent (NaN as numeric(10, 2), say), and is NULL in nearly every
row. Changes have `at` and `deleted` besides, and with all revisions `until`: when the next revision of the
key began, NULL if none had by T. A deletion has its key's columns and no others.

Invariant (scan-exact): a scan returns the same as a naive read of all revisions, regardless of flushes and
cleanings before and during it.

Walk: `pipeline.scan`'s kernel -> `Scanner.tables` -> `lake.tables` converts both sides to one shape.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.errors import BaseMoved, CorruptData
from tenure.base.timestamp import MAX_AT, ZERO_AT, Timestamp
from tenure.kv.keys import Span
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.snapshot import judge_span, marks
from tenure.kv.store import Store
from tenure.storage.engine import HEAD_BYTES, ReadResult, Revision, Revisions
from tenure.table.arrays import Rows
from tenure.table.key_order import bounds_within
from tenure.table.lake.checked_files import CheckedFiles
from tenure.table.lake.format import AT, KEY, REST, UNTIL, Footer, name_of, schema_of
from tenure.table.lake.manifests import File, FileColumn, FileShape, Manifest, Manifests, no_base
from tenure.table.lake.revision_tables import (
    DELETED,
    ODD,
    began_within,
    deletions,
    gone,
    in_order,
    newest,
    there_still,
    with_odd,
    with_until,
)
from tenure.table.lake.tables import IndexFormat, of_file, of_revisions
from tenure.table.rows import Layout

PIECE_ROWS = 65_536
"""Rows of files that are read at once."""

DELTA_ROWS = 32_768
"""Revisions of the store that end a piece; they are Python objects for a while."""

PAGE_KEYS = 8_192
"""Keys per read of the store."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """The wanted part of an index, by a version of its table."""

    layout: Layout
    index: int
    columns: tuple[int, ...]
    at: Timestamp
    since_at: Timestamp | None = None
    is_all: bool = False
    """Every revision since, instead of the newest alone."""
    protected: tuple[ProtectedRead, ...] = ()
    """Protections of `at` or `since_at`, in whose name it reads below the threshold. All revisions since a
    time are not kept by a protection of that time.
    """

    @property
    def is_of_changes(self) -> bool:
        return self.is_all or self.since_at is not None

    @property
    def start_at(self) -> Timestamp:
        """The earliest time that it depends on."""
        return (self.since_at or ZERO_AT) if self.is_of_changes else self.at

    @property
    def schema(self) -> pa.Schema:
        schema = schema_of(self.format.shape)
        fields = [schema.field(name_of(id)) for id in self.columns]
        fields.append(pa.field(ODD, pa.binary()))
        if self.is_of_changes:
            fields += [pa.field(AT, pa.int64()), pa.field(DELETED, pa.bool_())]
        if self.is_all:
            fields.append(pa.field(UNTIL, pa.int64()))
        return pa.schema(fields)

    @property
    def format(self) -> IndexFormat:
        keyed = self.layout.indexes[self.index]
        assert keyed.is_primary, "rows are in a primary index"
        kept = [self.layout.columns[id] for id in sorted(self.columns)]
        shape = FileShape(tuple(FileColumn(each.id, each.type.ref, each.id in keyed.in_key) for each in kept))
        return IndexFormat(self.layout, keyed, shape)


class Scanner:
    """One pass over a span of an index."""

    def __init__(self, store: Store, files: CheckedFiles, request: ScanRequest, span: Span) -> None:
        self._store = store
        self._files = files
        self._request = request
        self._span = span
        self._head = span.lo[:HEAD_BYTES]
        self._format = request.format
        self._schema = request.schema
        self._manifests = Manifests(store.keyspace)
        self.manifest = self._newest()

    def tables(self) -> Iterator[Rows]:
        """Rows in key order, and in time order for one key; a table for each piece that has any."""
        lo = self._span.lo
        while True:
            try:
                for end in self._ends(lo):
                    while lo < end:
                        rows, lo = self._piece(Span(lo, end))
                        if len(rows):
                            yield rows
                return
            except BaseMoved as error:
                self._move_on(error)

    def _newest(self) -> Manifest:
        table = self._request.layout.table.id
        snapshot = self._store.snapshot()
        return self._manifests.get(snapshot, table, self._request.index) or no_base(
            table, self._request.index
        )

    def _move_on(self, error: Exception) -> None:
        newest = self._newest()
        if newest == self.manifest:
            raise CorruptData(
                f"the lake's files of table {newest.table}, index {newest.index} are not all there: {error}",
                hint="Is this the lake that belongs to the store? See --lake.",
            ) from error
        self.manifest = newest

    # ── cutting ────────────────────────────────────────────────────────────────────────────────

    def _ends(self, lo: bytes) -> list[bytes]:
        """The ends of pieces, in order: each has about so many rows of files."""
        groups = []
        for file in self._files_within(Span(lo, self._span.hi)):
            footer = self._files.footer(file)
            for number, first in enumerate(footer.firsts):
                groups.append((self._head + first, footer.metadata.row_group(number).num_rows))
        ends, size = [], 0
        for first, rows in sorted(groups):
            if size and size + rows > PIECE_ROWS and lo < first < self._span.hi:
                ends.append(first)
                size = 0
            size += rows
        return [*ends, self._span.hi]

    def _files_within(self, span: Span) -> list[File]:
        """Files that may have wanted rows of a span."""
        request, manifest = self._request, self.manifest
        if request.is_of_changes and request.start_at >= manifest.flushed_at:
            return []
        live = [file for file in manifest.live if file.first_at <= request.at]
        past = [file for file in manifest.past if self._may_tell(file)]
        return [
            file
            for file in (*live, *past)
            if self._head + file.last >= span.lo and self._head + file.first < span.hi
        ]

    def _may_tell(self, file: File) -> bool:
        """Whether a past file has rows that were visible, or changed, at the wanted times."""
        request = self._request
        if request.is_of_changes:
            return file.first_at <= request.at and file.until > request.start_at
        return request.at < self.manifest.flushed_at and file.first_at <= request.at < file.until

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def _piece(self, span: Span) -> tuple[Rows, bytes]:
        """Rows from the start of a span on, and the key up to which they go."""
        request = self._request
        if request.at < self.manifest.flushed_at:
            rows = self._changes(span, []) if request.is_of_changes else self._visible_before(span)
            # After the files were read: a threshold is published before history is removed from them.
            found = marks(self._store.engine, self._store.keyspace, span)
            self._judge(found, span, flushed_at=MAX_AT)
            return rows, span.hi
        delta, end = self._delta(span)
        span = Span(span.lo, end)
        rows = self._changes(span, delta) if request.is_of_changes else self._visible(span, delta)
        return rows, end

    def _delta(self, span: Span) -> tuple[list[Revision], bytes]:
        """The store's revisions above the base, of as much of the span as is read at once."""
        request, flushed_at = self._request, self.manifest.flushed_at
        since_at = max(flushed_at, request.start_at) if request.is_of_changes else flushed_at
        guard = self._store.keyspace.guard(span)
        found: list[Revision] = []
        lo = span.lo
        while True:
            page = self._store.engine.revisions(
                Revisions(lo, span.hi, guard, since_at, request.at, PAGE_KEYS)
            )
            self._judge(page, span, flushed_at=since_at)
            found += page.revisions
            if not page.last:
                return found, span.hi
            lo = page.last + b"\0"
            if len(found) >= DELTA_ROWS:
                return found, lo

    def _judge(self, found: ReadResult, span: Span, *, flushed_at: Timestamp) -> None:
        request = self._request
        for read_at in {request.start_at, request.at}:
            judge_span(
                *(self._store.engine, self._store.keyspace, () if request.is_all else request.protected),
                *(span, found),
                read_at=read_at,
                flushed_at=flushed_at,
            )

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def _visible(self, span: Span, delta: Sequence[Revision]) -> Rows:
        """At a time from F on: live rows without those that the store has newer, and these."""
        files = self._files_within(span)
        if not delta:
            return self._joined([self._columns_of(file, span) for file in files])
        keys = pa.array([revision.key[HEAD_BYTES:] for revision in delta], pa.binary())
        tables = [self._rows_of(file, span) for file in files]
        kept = [rows.filter(pc.invert(pc.is_in(rows.column(KEY), value_set=keys))) for rows in tables]
        last = {revision.key: revision for revision in delta}
        rows = [revision for revision in last.values() if revision.value is not None]
        return self._picked(in_order([*kept, self._of_revisions(rows)]))

    def _visible_before(self, span: Span) -> Rows:
        """At a time before F."""
        at = self._request.at
        tables = []
        for file in self._files_within(span):
            rows = self._rows_of(file, span)
            is_visible = pc.less_equal(rows.column(AT), at)
            if UNTIL in rows.column_names:
                is_visible = pc.and_(is_visible, pc.greater(rows.column(UNTIL), at))
            tables.append(rows.filter(is_visible).select(self._names))
        return self._picked(in_order([self._nothing, *tables]))

    def _changes(self, span: Span, delta: Sequence[Revision]) -> Rows:
        request = self._request
        tables, ended = [], []
        for file in self._files_within(span):
            rows = self._rows_of(file, span)
            tables.append(began_within(rows, request.start_at, request.at).select(self._names))
            if UNTIL in rows.column_names:
                ended.append(rows.select([KEY, UNTIL]))
        begun = in_order([self._nothing, *tables])
        dead = deletions(begun, ended, request.start_at, request.at)
        dead += [(revision.key[HEAD_BYTES:], revision.at) for revision in delta if revision.value is None]
        written = self._of_revisions([revision for revision in delta if revision.value is not None])
        there = [there_still(rows) for rows in (begun, written)]
        rows = in_order([*there, gone(self._format, there[0].schema, dead)])
        return self._picked(with_until(rows) if request.is_all else newest(rows))

    @property
    def _names(self) -> list[str]:
        names: list[str] = self._nothing.column_names
        return names

    @property
    def _nothing(self) -> Rows:
        schema = schema_of(self._format.shape)
        return schema.set(schema.get_field_index(REST), pa.field(ODD, pa.binary())).empty_table()

    def _picked(self, rows: Rows) -> Rows:
        return rows.select(self._schema.names)

    def _joined(self, tables: Sequence[Rows]) -> Rows:
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    def _of_revisions(self, revisions: Sequence[Revision]) -> Rows:
        return with_odd(of_revisions(self._format, revisions), self._request.columns)

    # ── rows of files ──────────────────────────────────────────────────────────────────────────

    def _columns_of(self, file: File, span: Span) -> Rows:
        """All rows of a live file in a span: its columns alone, where nothing else needs to be read."""
        groups, is_cut = self._groups(file, span)
        if is_cut or not self._is_plain(file):
            return self._picked(self._rows_of(file, span))
        names = [name_of(id) for id in self._request.columns]
        footer = self._files.footer(file)
        rows = self._files.read_groups(file, groups, names).select(names)
        count = sum(footer.metadata.row_group(number).num_rows for number in groups)
        odd = pa.nulls(count, pa.binary())
        if not names:
            return pa.table([odd], schema=self._schema)
        return rows.append_column(ODD, odd).cast(self._schema)

    def _is_plain(self, file: File) -> bool:
        """Whether each wanted column is in the file unchanged, with all its values."""
        shape = {column.id: column.type for column in self.manifest.shapes[file.shape].columns}
        wanted = {column.id: column.type for column in self._format.shape.columns}
        return wanted.items() <= shape.items() and not wanted.keys() & set(file.odd)

    def _rows_of(self, file: File, span: Span) -> Rows:
        """A file's rows of a span, with keys and times, in the requested shape."""
        wanted = {column.id for column in self._format.shape.columns}
        there = self.manifest.shapes[file.shape]
        shape = FileShape(tuple(column for column in there.columns if column.id in wanted))
        footer = self._files.footer(file)
        names = [KEY, AT, *(name_of(column.id) for column in shape.columns), REST]
        if _is_past(footer):
            names.insert(2, UNTIL)
        groups, is_cut = self._groups(file, span)
        rows = self._files.read_groups(file, groups, names)
        if is_cut or UNTIL in names:
            rows = rows.slice(*bounds_within(rows.column(KEY), span.lo[HEAD_BYTES:], self._end(span)))
        return with_odd(of_file(self._format, file, shape, rows), self._request.columns)

    def _groups(self, file: File, span: Span) -> tuple[range, bool]:
        """The row groups that may have rows of a span, and whether they may have others, too."""
        firsts = self._files.footer(file).firsts
        lo, hi = span.lo[HEAD_BYTES:], self._end(span)
        start = max(0, bisect_right(firsts, lo) - 1)
        while start > 0 and firsts[start] == lo and _is_past(self._files.footer(file)):
            start -= 1  # with several rows of a key, the group before may have some of them, too
        end = len(firsts) if hi is None else bisect_left(firsts, hi)
        ends_with_group = hi is None or (firsts[end] == hi if end < len(firsts) else file.last < hi)
        return range(start, end), firsts[start] < lo or not ends_with_group

    def _end(self, span: Span) -> bytes | None:
        """Where a span ends, without the head; None if that is the end of the index."""
        return span.hi[HEAD_BYTES:] if span.hi.startswith(self._head) else None


def _is_past(footer: Footer) -> bool:
    return UNTIL in footer.metadata.schema.names
