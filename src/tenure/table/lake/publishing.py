"""Publishing: a new base replaces an older one, in one write.

    begin       a merge claims its index; there is one at a time
    publish     the manifest names the new files, and no longer those that they replace
    clean       flushed revisions are removed from the store, well after the flush
    delete      files that were dropped long enough ago are deleted

A merge without input changes no answer, so it conflicts with no transaction. A merge with input is published
into a span that nobody can write, and counts as a write of all of it: it moves the cleaned mark to its own
commit timestamp. So a reader with an older manifest starts over with the new one, a transaction that read the
span before is refused at its commit, and a watch is told to scan again from there.

A backfill is of a span that is written meanwhile and that nobody reads yet: its entries count as of the time
B at which it read the rows, which is F; newer revisions stay on top. It counts as a write of all of the span,
too: times before its commit are no longer readable there. So a transaction that found a key free before,
which the base has, is refused.

Invariant (one-merge): a base is published only by the job that claims its index, from the manifest that its
merge began with.
Invariant (I40): files are named by a manifest only if a task's result named them.

Walk: the jobs of `bulk` call these in transactions fenced by their run.
"""

from collections.abc import Iterable

from tenure.base.errors import RetryError
from tenure.base.timestamp import MAX_AT, Timestamp, to_bytes
from tenure.kv.keys import MERGES, Keyspace
from tenure.kv.records import Record, Records, replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.thresholds import clean
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Stamp
from tenure.table.lake.manifests import File, FileShape, Manifest, Manifests, WrittenFile, no_base


class MergeClaim(Record, frozen=True):
    table: int
    index: int
    job: int


class Merges:
    """The job that merges each index."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._records = Records(keyspace, MERGES, MergeClaim, key=("table", "index"))

    def holder(self, txn: Transaction | Snapshot, table: int, index: int) -> int:
        found = self._records.get(txn, table, index)
        return 0 if found is None else found.job

    def claim(self, txn: Transaction, table: int, index: int, job: int) -> None:
        """The caller has checked that the job which holds the claim, if any, has ended."""
        self._records.put(txn, MergeClaim(table, index, job))

    def release(self, txn: Transaction, table: int, index: int, job: int) -> None:
        if self.holder(txn, table, index) == job:
            self._records.delete(txn, table, index)

    def all(self, txn: Transaction) -> Iterable[MergeClaim]:
        return self._records.scan(txn)


class ManifestEdit(Record, frozen=True):
    """The changes of a base by a merge: files removed and files added."""

    gone: tuple[str, ...]
    live: tuple[WrittenFile, ...] = ()
    past: tuple[WrittenFile, ...] = ()


def succeeded(manifest: Manifest, replaced: ManifestEdit, flushed_at: Timestamp) -> Manifest:
    """The base after a merge."""
    gone = frozenset(replaced.gone)
    shapes = list(manifest.shapes)
    live = [file for file in manifest.live if file.name not in gone]
    live += [_numbered(written, shapes) for written in replaced.live]
    past = [file for file in manifest.past if file.name not in gone]
    past += [_numbered(written, shapes) for written in replaced.past]
    return Manifest(
        manifest.table,
        manifest.index,
        flushed_at,
        tuple(shapes),
        tuple(sorted(live, key=lambda file: file.first)),
        tuple(past),
    )


def _numbered(written: WrittenFile, shapes: list[FileShape]) -> File:
    if written.shape not in shapes:
        shapes.append(written.shape)
    return replace(written.file, shape=shapes.index(written.shape))


def publish_filled(
    txn: Transaction,
    keyspace: Keyspace,
    manifests: Manifests,
    began_with: Manifest,
    live: Iterable[WrittenFile],
    filled_at: Timestamp,
) -> None:
    """Makes a backfill's files the base of an index that nobody reads yet; its former base is dropped."""
    gone = tuple(file.name for file in began_with.files)
    publish(txn, keyspace, manifests, began_with, ManifestEdit(gone, tuple(live)), filled_at)
    head = keyspace.head(began_with.table, began_with.index)
    txn.put(keyspace.cleaned_key(head), to_bytes(filled_at))
    txn.put(keyspace.threshold_key(head), to_bytes(MAX_AT), value_stamp=Stamp(0))


def publish(
    txn: Transaction,
    keyspace: Keyspace,
    manifests: Manifests,
    began_with: Manifest,
    replaced: ManifestEdit,
    flushed_at: Timestamp | None,
) -> None:
    """Makes a merge's result the base; without `flushed_at` as of its commit, because it had input."""
    manifest = manifests.get(txn, began_with.table, began_with.index)
    if (manifest or no_base(began_with.table, began_with.index)) != began_with:
        raise RetryError("the base has changed since the merge began")
    successor = succeeded(began_with, replaced, MAX_AT if flushed_at is None else flushed_at)
    manifests.put(txn, successor, as_published=flushed_at is None)
    named = {file.name for file in successor.files}
    for file in began_with.files:
        if file.name not in named:
            manifests.drop_file(txn, began_with, file)
    if flushed_at is None:
        head = keyspace.head(began_with.table, began_with.index)
        txn.put(keyspace.cleaned_key(head), to_bytes(MAX_AT), value_stamp=Stamp(0))


def clean_some(
    txn: Transaction, keyspace: Keyspace, manifest: Manifest, at: Timestamp, *, limit: int
) -> None:
    """Removes flushed revisions up to a time from the store; `txn.removed` is their number."""
    assert at <= manifest.flushed_at, "only what the base has may go"
    clean(txn, keyspace, keyspace.head(manifest.table, manifest.index), at, limit=limit)
