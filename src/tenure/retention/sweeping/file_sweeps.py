"""Files: past files that a pair does not need go by an edit of the manifest, others are rewritten by a merge.

The edit is one transaction, which reads that no merge has claimed the index: under a merge it would cost the
merge its work. A merge that is started later finds the edited manifest.

Invariant (edit-claim): a sweep edits a manifest only where no open merge has claimed the index.

Walk: `retention.sweeping.rounds` calls `sweep_files` for each head `with_file_garbage` -> `file_garbage`,
`table.lake.publishing`; a merge calls `note_merge` when it publishes.
"""

from collections.abc import Iterable

from tenure.cluster.jobs.runs import Run
from tenure.kv.keys import Keyspace
from tenure.kv.records import replace
from tenure.kv.transaction import Transaction
from tenure.retention.sweeping.file_garbage import FileGarbage, file_garbage
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.sweeping.sweep_records import SweepRecord, SweepStage, sweep_records
from tenure.table.lake.keep import Keep
from tenure.table.lake.publishing import ManifestEdit, publish


def with_file_garbage(services: SweepServices, records: Iterable[SweepRecord]) -> list[SweepRecord]:
    """Those of the heads whose files have garbage that is not noted, or about which something can be done."""
    snapshot = services.store.snapshot()
    swept = {
        services.keyspace.table_and_index(record.head): record
        for record in records
        if record.stage in (SweepStage.PUBLISHED, SweepStage.SWEPT)
    }
    services.manifests.read_ahead(snapshot, swept)
    return [
        record
        for place, record in swept.items()
        if (manifest := services.manifests.get(snapshot, *place)) is not None
        and _is_news(file_garbage(manifest, record.keep, record.files_keep), record)
    ]


def _is_news(found: FileGarbage, record: SweepRecord) -> bool:
    return bool(found.ended) or found.is_merge_due or found.rows != record.garbage_rows


def sweep_files(services: SweepServices, run: Run, record: SweepRecord) -> int:
    """Drops the past files of a head that have ended; returns the job of a merge that it started, or 0."""
    table, index = services.keyspace.table_and_index(record.head)
    found = run.transact(lambda txn: _edit(txn, services, record))
    if found is None or not found.is_merge_due or services.start_merge is None:
        return 0
    return services.start_merge(table, index, record.keep, frozenset(found.wasteful))


def _edit(txn: Transaction, services: SweepServices, record: SweepRecord) -> FileGarbage | None:
    table, index = services.keyspace.table_and_index(record.head)
    records = sweep_records(services.keyspace)
    stored = records.get(txn, record.head)
    manifest = services.manifests.get(txn, table, index)
    if stored is None or manifest is None or stored.published_at != record.published_at:
        return None
    found = file_garbage(manifest, record.keep, stored.files_keep)
    is_claimed = services.jobs.is_open(txn, services.merges.holder(txn, table, index))
    rows_left = found.rows if is_claimed else found.rows - found.ended_rows
    if rows_left != stored.garbage_rows:
        records.put(txn, replace(stored, garbage_rows=rows_left))
    if is_claimed:
        return None
    if found.ended:
        edit = ManifestEdit(found.ended)
        publish(txn, services.keyspace, services.manifests, manifest, edit, manifest.flushed_at)
    return found


def note_merge(txn: Transaction, keyspace: Keyspace, table: int, index: int, keep: Keep) -> None:
    """A merge has rewritten past files by a pair: with its publication, they are garbage no more."""
    records = sweep_records(keyspace)
    stored = records.get(txn, keyspace.head(table, index))
    if stored is not None and stored.files_keep.threshold < keep.threshold:
        records.put(txn, replace(stored, files_keep=keep, garbage_rows=0))
