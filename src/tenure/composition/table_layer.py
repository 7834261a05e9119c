"""Rows of a node: layouts, sequences, row ids, the context of expressions, and the lake.

Walk: `node.py` calls `build_tables` after the catalog is there; `composition.job_layer` and
`composition.sql_layer` use what it returns.
"""

from dataclasses import dataclass
from uuid import UUID

from tenure.base.env import Env
from tenure.base.errors import CorruptData
from tenure.base.node_memory import NodeMemory
from tenure.base.settings import LAKE_MEMORY
from tenure.base.task_memory import TaskMemory
from tenure.bulk.lakes import Lake
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.cluster.jobs.runs import Run
from tenure.composition.cluster_layer import ClusterLayer
from tenure.composition.node_start import NodeStart
from tenure.composition.protection_layer import ProtectionLayer
from tenure.composition.storage_layer import StorageLayer
from tenure.expr.functions.function import Context
from tenure.kv.store import Store
from tenure.pipeline.remote_handles import StoreHandle
from tenure.pipeline.tasks import SPARK, ProcessTasks, Tasks
from tenure.storage.files import open_files
from tenure.table.arrow_pool import release_arrow
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.manifests import Manifests
from tenure.table.lake.opening import open_lake
from tenure.table.lake.publishing import Merges
from tenure.table.rowids import RowIds
from tenure.table.rows import Layouts
from tenure.table.sequences import Sequences, SessionSequences
from tenure.table.temporary_rows import TemporaryRows


@dataclass(frozen=True)
class TableLayer:
    env: Env
    store: Store
    catalog: Catalog
    layouts: Layouts
    sequences: Sequences
    rowids: RowIds
    temporary_rows: TemporaryRows
    tasks: "TaskPlaces"
    lake: Lake | None

    def context(self) -> Context:
        """The context of expressions besides the row, in work that belongs to no session."""
        now_micros = self.env.wall_micros()
        values = SessionSequences(self.sequences, self._stored_sequence)
        return Context(now_micros, now_micros, self._random_uuid, self.rowids, sequences=values)

    def _stored_sequence(self, id: int) -> SequenceDescriptor:
        """A sequence as stored; one that is being dropped still gives values."""
        found = self.catalog.get(self.store.snapshot(), id)
        if not isinstance(found, SequenceDescriptor):
            raise CorruptData(f"descriptor {id} is not a sequence")
        return found

    def _random_uuid(self) -> UUID:
        return UUID(int=self.env.rng.getrandbits(128), version=4)


def build_tables(
    start: NodeStart,
    storage: StorageLayer,
    cluster: ClusterLayer,
    catalog: Catalog,
    protections: ProtectionLayer,
) -> TableLayer:
    store, tasks = storage.store, TaskPlaces(start, cluster.memory)
    lake = None
    if start.options.lake:
        lake = _open_lake(start, storage, cluster, catalog, protections, tasks)
    sequences = Sequences(store, store.keyspace)
    return TableLayer(
        start.env,
        store,
        catalog,
        Layouts(store.keyspace),
        sequences,
        RowIds(start.env, store.clock, cluster.instance),
        TemporaryRows(store, sequences, cluster.deaths),
        tasks,
        lake,
    )


def _open_lake(
    start: NodeStart,
    storage: StorageLayer,
    cluster: ClusterLayer,
    catalog: Catalog,
    protections: ProtectionLayer,
    tasks: "TaskPlaces",
) -> Lake:
    options, lifecycle = start.options, start.lifecycle
    store, jobs = storage.store, cluster.jobs
    files = open_files(options.lake)
    identity = open_lake(store, files, jobs, storage.engine.origin())
    manifests = Manifests(store.keyspace)
    bases = LakeBases(store, manifests, files, cache_bytes=cluster.current()[LAKE_MEMORY])
    bases.load()
    lifecycle.on_stop(bases.close)
    store.use_bases(bases)
    lifecycle.run(lifecycle.loop("bases", bases.follow, interrupt=bases.wake))
    return Lake(
        store,
        files,
        StoreHandle(options.store, files.address, store.keyspace.tenant, files.credentials, identity.id),
        manifests,
        Merges(store.keyspace),
        bases,
        catalog,
        jobs,
        protections.of_jobs,
        protections.tracker,
        cluster.settings.current,
        tasks.tasks_for,
    )


class TaskPlaces:
    """Chooses where the tasks of a job's run are executed: in this process, or on Spark."""

    def __init__(self, start: NodeStart, memory: NodeMemory) -> None:
        self._spark = start.options.spark
        self.process = ProcessTasks(start.env, TaskMemory(start.env, memory, (release_arrow,)))

    def tasks_for(self, run: Run) -> Tasks:
        if SPARK not in run.needs:
            return self.process
        assert self._spark is not None, "a job that needs Spark was adopted without"
        return self._spark()
