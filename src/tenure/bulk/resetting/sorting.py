"""Rows of then become sorted runs of all present indexes; and the keys that rows of another table refer to.

    a range at the earlier time ──► present columns ──► defaults, NOT NULL, CHECK ──► sorted runs
    a range of a referring table ──► the keys that its rows refer to ──► sorted runs

A row that breaks a constraint of today ends the reset, with the error of the constraint.

Walk: `resetting.job` runs `sort_range` and `refer_range` as kernels; both end in the runs of
`ingest.run_chunks`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tenure.base.errors import CheckViolation, NotNullViolation, UniqueViolation, UserError
from tenure.bulk.ingest.defaults import as_column
from tenure.bulk.ingest.rows import RowBatch, rest_of
from tenure.bulk.ingest.run_chunks import (
    RunChunks,
    SortedReference,
    SortedSplits,
    layout_of,
    reference_keys,
    row_completer,
    with_short_keys,
)
from tenure.bulk.ingest.statement_facts import StatementFacts
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.kv.records import Record
from tenure.pipeline.merge_inputs import Clash
from tenure.pipeline.reading.tasks import ReadBatch, Reject
from tenure.pipeline.remote_handles import TableVersion, opened
from tenure.pipeline.runs import SortedRun, evened, in_order, joined, keys_of, write_run
from tenure.pipeline.scan import ScanTask, batches
from tenure.pipeline.tasks import Attempt
from tenure.storage.files import Files
from tenure.table.arrays import Rows
from tenure.table.columns import key_text
from tenure.table.key_order import doubled
from tenure.table.lake.format import REST, name_of
from tenure.table.lake.revision_tables import ODD
from tenure.table.lake.tables import IndexFormat
from tenure.table.packing import Packed, pack
from tenure.table.rows import Layout, key_values


class ResetTask(NamedTuple):
    scan: ScanTask
    """Of the former version, at the earlier time."""
    version: TableVersion
    """The present one."""
    columns: Mapping[int, int]
    """Where present columns have their values from: see `former_columns`."""
    facts: StatementFacts
    references: tuple[SortedReference, ...]
    sequences: tuple[SequenceDescriptor, ...]
    first_row: int
    """The prefix of this task's row ids."""


class ReferTask(Record, frozen=True):
    scan: ScanTask
    """Of the referring table, with the columns of its foreign key."""
    reference: SortedReference


class ResetRules(NamedTuple):
    """How rows of then become those of an index."""

    @property
    def at(self) -> None:
        return None

    @property
    def replaces(self) -> bool:
        return True

    def admitted(self, lake: Files, rows: Rows) -> Rows:
        return rows

    def refuse(self, lake: Files, format: IndexFormat, added: Rows, live: Rows) -> tuple[Clash, ...]:
        keys = keys_of(added)
        values = key_values(format.index, keys[int(doubled(keys)[0])].as_py())
        raise UniqueViolation(
            f'duplicate key value violates unique constraint "{format.index.name}"',
            detail=f"Key {key_text(format.layout.columns, format.index.columns, values)} is there twice.",
            table=format.layout.table,
            constraint=format.index.name,
        )


def sort_range(task: ResetTask, attempt: Attempt) -> SortedSplits:
    """The kernel: a range of rows of then as sorted runs of the present indexes."""
    place = opened(task.scan.place)
    then, now = layout_of(place, task.scan.version), layout_of(place, task.version)
    rows = row_completer(place, now, task.facts, task.sequences, task.first_row)
    stem = f"{task.scan.place.tenant}/scratch/{attempt.name}"
    chunks = RunChunks(place.lake, stem, now, task.references, rows.context)
    for scanned in batches(place, task.scan):
        batch, rejects = rows.complete(_in_present_columns(scanned, then, now, task.columns), "")
        batch, others = with_short_keys(now, batch, "", rows)
        for reject in (*rejects, *others):
            raise _error(now, reject)
        chunks.add(batch, 0)
    chunks.write()
    return SortedSplits(
        chunks.rows,
        {id: tuple(runs) for id, runs in chunks.indexes.items()},
        {id: tuple(runs) for id, runs in chunks.references.items()},
        (),
    )


def _in_present_columns(scanned: Rows, then: Layout, now: Layout, columns: Mapping[int, int]) -> ReadBatch:
    """Rows of the former version as if they had been read for the present one."""
    count = len(scanned)
    former = RowBatch(
        {id: scanned.column(name_of(id)) for id in set(columns.values())},
        rest_of(scanned, ODD),
        np.zeros(count, np.int64),
    )
    arrays: dict[str, Any] = {}
    rest: dict[int, dict[int, Packed]] = {}

    def put(id: int, cells: list[Packed]) -> None:
        arrays[name_of(id)], beside = as_column(now.columns[id], cells)
        for row, value in beside.items():
            rest.setdefault(row, {})[id] = value

    for id, kept in now.columns.items():
        source = columns.get(id)
        if source is None:
            if kept.filled is not None and kept.generated is None:
                put(id, [kept.type.pack(kept.filled)] * count)
        elif then.columns[source].type.ref == kept.type.ref:
            arrays[name_of(id)] = former.columns[source]
            for row, values in former.rest.items():
                if source in values:
                    rest.setdefault(row, {})[id] = values[source]
        else:
            rows = former.values([then.columns[source]], range(count))
            accepted = [None if row[source] is None else kept.type.accept(row[source]) for row in rows]
            put(id, [None if value is None else kept.type.pack(value) for value in accepted])
    arrays[REST] = pa.array([pack(rest[row]) if row in rest else None for row in range(count)], pa.binary())
    return ReadBatch(pa.table(arrays), former.lines, [])


def _error(now: Layout, reject: Reject) -> UserError:
    for violation in (NotNullViolation, CheckViolation):
        if reject.sqlstate == violation.sqlstate:
            return violation(reject.reason, table=now.table, detail=reject.raw, column=reject.column)
    error = UserError(reject.reason)
    error.sqlstate = reject.sqlstate
    return error


def refer_range(task: ReferTask, attempt: Attempt) -> tuple[SortedRun, ...]:
    """The kernel: the keys that a range of rows refers to, as a sorted run, each once."""
    place = opened(task.scan.place)
    stem = f"{task.scan.place.tenant}/scratch/{attempt.name}"
    found = []
    for scanned in batches(place, task.scan):
        columns = {id: scanned.column(name_of(id)) for id in task.scan.columns}
        batch = RowBatch(columns, rest_of(scanned, ODD), np.zeros(len(scanned), np.int64))
        keys = reference_keys(task.reference, batch, 0)
        if len(keys):
            found.append(keys)
    if not found:
        return ()
    return (write_run(place.lake, f"{stem}.arrow", in_order(evened(joined(found)))),)
