"""The first pass: a split of the input becomes sorted runs, one for each index and foreign key.

    split ──► batches ──► whole rows (`ingest.rows`) ──► keys ──► sorted ──► runs (`ingest.run_chunks`)

Walk: `importing.first_pass` runs `sort_split` as a kernel -> `RunChunks`; the second pass reads the runs.
"""

from typing import NamedTuple

from tenure.base.errors import BadInput
from tenure.bulk.importing.inputs import Split
from tenure.bulk.importing.rejects import too_many
from tenure.bulk.ingest.run_chunks import (
    RunChunks,
    SortedReference,
    SortedSplits,
    layout_of,
    row_completer,
    with_short_keys,
)
from tenure.bulk.ingest.statement_facts import StatementFacts
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.pipeline.reading.rows import read
from tenure.pipeline.reading.tasks import Reject
from tenure.pipeline.remote_handles import StoreHandle, TableVersion, opened
from tenure.pipeline.tasks import Attempt


class SortTask(NamedTuple):
    place: StoreHandle
    version: TableVersion
    facts: StatementFacts
    splits: tuple[Split, ...]
    references: tuple[SortedReference, ...]
    sequences: tuple[SequenceDescriptor, ...]
    first_row: int
    """The prefix of this task's row ids."""
    bad_rows_max: int


def sort_split(task: SortTask, attempt: Attempt) -> SortedSplits:
    """The kernel."""
    place = opened(task.place)
    layout = layout_of(place, task.version)
    rows = row_completer(place, layout, task.facts, task.sequences, task.first_row)
    chunks = RunChunks(
        place.lake, f"{task.place.tenant}/scratch/{attempt.name}", layout, task.references, rows.context
    )
    rejects: list[Reject] = []
    for split in task.splits:
        try:
            for read_batch in read(split.task, split.open_input):
                batch, refused = rows.complete(read_batch, split.shown)
                batch, others = with_short_keys(layout, batch, split.shown, rows)
                rejects += [*refused, *others]
                if len(rejects) > task.bad_rows_max:
                    raise too_many(rejects, task.bad_rows_max)
                chunks.add(batch, split.source)
        except BadInput as error:
            error.detail = error.detail or error.where
            raise
    chunks.write()
    return SortedSplits(
        chunks.rows,
        {id: tuple(runs) for id, runs in chunks.indexes.items()},
        {id: tuple(runs) for id, runs in chunks.references.items()},
        tuple(rejects),
    )
