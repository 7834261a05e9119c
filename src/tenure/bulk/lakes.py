"""The common part of all bulk jobs: the store, the lake, and the claims of merges.

Walk: `composition.table_layer` makes one; the jobs of `bulk` are given it.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenure.base.settings import Settings
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.cluster.jobs.job_states import GIVEN_UP
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.jobs.runs import Run
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.pipeline.remote_handles import StoreHandle, TableVersion, version_of
from tenure.pipeline.tasks import Tasks
from tenure.retention.job_protections import JobProtections
from tenure.retention.tracking.tracker import Tracker
from tenure.storage.files import Files
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.manifests import Manifests
from tenure.table.lake.publishing import Merges


class Lake(NamedTuple):
    store: Store
    files: Files
    place: StoreHandle
    """The same, for other processes."""
    manifests: Manifests
    merges: Merges
    bases: LakeBases
    catalog: Catalog
    jobs: Jobs
    protections: JobProtections
    tracker: Tracker
    settings: Callable[[], Settings]
    tasks_for: Callable[[Run], Tasks]
    """Returns the tasks of a run: in this process, or on Spark."""

    def version(self, snapshot: Snapshot, table: int) -> TableVersion | None:
        """A table as of a time; None if it does not exist."""
        return version_of(table, lambda id: self.catalog.get(snapshot, id))

    def is_given_up(self, run: Run) -> bool:
        """Whether a run's output is not wanted: its job is, or will be, reverted."""
        control = self.jobs.control(self.store.snapshot(), run.job.id)
        return control is not None and control.state in GIVEN_UP

    def delete_scratch(self, run: Run, *, below: int) -> None:
        """Deletes files that earlier runs of a job have left: on a full disk the next needs the space."""
        former = [label_of(run.job.id, number) + "-" for number in range(1, below)]
        if not former:
            return
        directory = f"{self.place.tenant}/scratch"
        names = [name for name in self.files.names_in(directory) if name.startswith(tuple(former))]
        self.files.delete([f"{directory}/{name}" for name in names])


def label(run: Run) -> str:
    """The prefix of the names of a run's attempts, which identifies their files."""
    return label_of(run.job.id, run.fence.run)


def label_of(job: int, run: int) -> str:
    return f"j{job}-r{run}"
