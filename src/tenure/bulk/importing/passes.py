"""The common part of an import's two passes: for the whole run, and for each table.

Walk: `importing.job` makes a `Pass` for its run -> `FirstPass`, `SecondPass`.
"""

from typing import NamedTuple

from tenure.bulk.importing.new_tables import NewTables
from tenure.bulk.importing.records import INSERTS, ImportPayload, TableInput
from tenure.bulk.importing.rejects import too_many
from tenure.bulk.ingest.existing_tables import ExistingTables
from tenure.bulk.ingest.run_chunks import SortedReference
from tenure.bulk.lakes import Lake, label
from tenure.bulk.phases import Phases
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.cluster.jobs.runs import Run
from tenure.pipeline.reading.tasks import Reject
from tenure.pipeline.remote_handles import TableVersion
from tenure.pipeline.tasks import attempt_name
from tenure.storage.locations import Locations
from tenure.table.rows import Layout

READING, MERGING, REFERRING = (0.0, 0.6), (0.6, 0.9), (0.9, 0.95)
"""The job's fraction at the end of each phase."""


class ImportTable(NamedTuple):
    """A table of the import, as of the time it went offline."""

    input: TableInput
    version: TableVersion
    layout: Layout
    references: tuple[SortedReference, ...]
    sequences: tuple[SequenceDescriptor, ...]


class Pass(NamedTuple):
    lake: Lake
    locations: Locations
    run: Run
    payload: ImportPayload
    targets: ExistingTables | NewTables
    phases: Phases

    def scratch(self, what: str) -> str:
        """A new name for a file that is never published."""
        attempt = attempt_name(label(self.run), self.lake.store.env)
        return f"{self.lake.place.tenant}/scratch/{attempt}-{what}"

    def tolerate(self, rejects: list[Reject]) -> None:
        if len(rejects) > self.payload.bad_rows_max:
            raise too_many(rejects, self.payload.bad_rows_max)

    def tolerated(self, table: ImportTable) -> int:
        """How many rows may be refused for their keys."""
        # Several rows of an INSERT may be on one line, which then does not identify them.
        return 0 if table.input.format == INSERTS else self.payload.bad_rows_max
