"""Manifests: the files of an index's base.

    manifest of (table, index)
      flushed_at    F: all revisions up to here are in the files
      live          the revisions visible at F; files in key order, none overlapping another
      past          older revisions that are still needed, each with at and until
      shapes        what columns files have: many files share one

A file that no manifest names does not exist. One record holds the whole manifest, so a base changes in one
write. Rows of a merge with input carry no time of their own, nor do the ends of rows that they replace: both
are the time at which their file was published. A file is written before that is known, so it says
AS_PUBLISHED; the manifest that first names it has the commit's own timestamp, and readers of the manifest get
that.

A file that is dropped from a manifest is recorded until it is deleted, with the time it was dropped: readers
that planned with the older manifest may still be reading it.

Invariant (manifest-order): live files are sorted, and their bounds do not overlap.

Walk: `lake.publishing` writes manifests; `lake.bases` reads them for the node, kernels get them in tasks.
"""

from collections.abc import Iterable, Iterator

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.kv.encoding import decode
from tenure.kv.keys import DROPPED_FILES, MANIFESTS, Keyspace, Span
from tenure.kv.records import Record, Records, replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES

AS_PUBLISHED = -1


class FileColumn(Record, frozen=True):
    id: int
    type: TypeRef
    is_in_key: bool = False
    """Whether the key contains its exact value; then rows do not repeat it."""


class FileShape(Record, frozen=True):
    """The columns of a file: those of rows, or none for the entries of a secondary index."""

    columns: tuple[FileColumn, ...]
    is_entries: bool = False


class File(Record, frozen=True):
    name: str
    first: bytes
    last: bytes
    """Its least and greatest key, without the head."""
    rows: int
    size: int
    """In bytes."""
    checksum: bytes
    """The checksum of the whole file."""
    shape: int
    published_at: Timestamp = ZERO_AT
    """The time of rows that have none."""
    first_at: Timestamp = ZERO_AT
    """No row is visible before this,"""
    until: Timestamp = ZERO_AT
    """nor, in a past file, from this time on."""
    odd: tuple[int, ...] = ()
    """Columns some of whose values are in `rest`."""
    tail_size: int = 0
    tail_checksum: bytes = b""
    """The length and checksum of the tail, which has the checksums of its chunks; absent in files of earlier
    versions.
    """
    held_size: int = 0
    """The size of its rows in memory, in bytes; 0 in files of earlier versions."""


class WrittenFile(Record, frozen=True):
    """A file as its writer describes it; the manifest that will name it numbers its shape."""

    file: File
    shape: FileShape


class Manifest(Record, frozen=True):
    table: int
    index: int
    flushed_at: Timestamp
    shapes: tuple[FileShape, ...] = ()
    live: tuple[File, ...] = ()
    past: tuple[File, ...] = ()

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.live)

    @property
    def files(self) -> tuple[File, ...]:
        return (*self.live, *self.past)


class DroppedFile(Record, frozen=True):
    name: str
    table: int
    index: int
    dropped_at: Timestamp = ZERO_AT


def no_base(table: int, index: int) -> Manifest:
    """The manifest of an index all of whose rows are in the store."""
    return Manifest(table, index, ZERO_AT)


def dated(manifest: Manifest) -> Manifest:
    """With its own time in place of AS_PUBLISHED."""
    if all(file.published_at != AS_PUBLISHED for file in manifest.files):
        return manifest
    live, past = (
        tuple(_dated(file, manifest.flushed_at) for file in files) for files in (manifest.live, manifest.past)
    )
    return replace(manifest, live=live, past=past)


def _dated(file: File, at: Timestamp) -> File:
    times = {
        name: at for name in ("published_at", "first_at", "until") if getattr(file, name) == AS_PUBLISHED
    }
    return replace(file, **times) if times else file


class Manifests:
    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._records = Records(keyspace, MANIFESTS, Manifest, key=("table", "index"))
        self._dropped = Records(keyspace, DROPPED_FILES, DroppedFile, key=("name",))

    @property
    def span(self) -> Span:
        return self._records.span()

    def get(self, source: Transaction | Snapshot, table: int, index: int) -> Manifest | None:
        found = self._records.get(source, table, index)
        return None if found is None else dated(found)

    def read_ahead(self, source: Transaction | Snapshot, indexes: Iterable[tuple[int, int]]) -> None:
        """Reads in one call the manifests that `get` is about to read, by table and index."""
        source.read_ahead([self._records.key(*index) for index in indexes])

    def all(self, source: Transaction | Snapshot, *table: int) -> Iterator[Manifest]:
        """The manifests of all indexes, or of those of one table."""
        return map(dated, self._records.scan(source, *table))

    def index_of(self, key: bytes) -> tuple[int, int]:
        """The table and the index that a key of a manifest names."""
        table, index = decode(key[HEAD_BYTES:])
        assert isinstance(table, int) and isinstance(index, int)
        return table, index

    def decode(self, value: bytes) -> Manifest:
        return dated(self._records.decode(value))

    def put(self, txn: Transaction, manifest: Manifest, *, as_published: bool = False) -> None:
        """Writes a manifest; one with input gets the commit's own timestamp as its `flushed_at`."""
        assert _is_ordered(manifest), "live files overlap"
        self._records.put(txn, manifest, stamp="flushed_at" if as_published else None)

    def delete(self, txn: Transaction, table: int, index: int) -> None:
        self._records.delete(txn, table, index)

    # ── files that are no longer named ─────────────────────────────────────────────────────────

    def drop_file(self, txn: Transaction, manifest: Manifest, file: File) -> None:
        dropped = DroppedFile(file.name, manifest.table, manifest.index)
        self._dropped.put(txn, dropped, stamp="dropped_at")

    def dropped(self, source: Transaction | Snapshot) -> Iterator[DroppedFile]:
        return self._dropped.scan(source)

    def forget_file(self, txn: Transaction, name: str) -> None:
        self._dropped.delete(txn, name)


def _is_ordered(manifest: Manifest) -> bool:
    pairs = zip(manifest.live, manifest.live[1:], strict=False)
    return all(file.first <= file.last for file in manifest.live) and all(
        one.last < other.first for one, other in pairs
    )
