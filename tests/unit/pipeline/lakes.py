"""A table with a lake in one process: history is written, flushed and cleaned at will."""

from pathlib import Path
from typing import Any

from tenure.base.env import SystemEnv
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.store import DEFAULT_TENANT, Store
from tenure.kv.transaction import Transaction
from tenure.pipeline import remote_handles
from tenure.pipeline.merge import MergeRequest, merge
from tenure.pipeline.remote_handles import StoreHandle, TableVersion
from tenure.pipeline.tasks import ProcessTasks
from tenure.storage.addresses import open_engine
from tenure.storage.files import open_files
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.keep import KEEP_ALL, Keep
from tenure.table.lake.manifests import Manifest, Manifests, no_base
from tenure.table.lake.publishing import clean_some, publish
from tenure.table.rows import Layout, Layouts
from tenure.table.write import TableWriter
from tests.unit.table.trees import CONTEXT


class Lake:
    """A store in a file, or at an address, and a lake beside it; `table` is how the table is just now."""

    def __init__(
        self, directory: Path, table: Table, *, cache_bytes: int = 1 << 20, address: str = "", lake: str = ""
    ) -> None:
        self.env = SystemEnv()
        self.files = open_files(lake or str(directory / "lake"))
        address = address or f"sqlite:{directory}/store.db"
        self.place = StoreHandle(address, self.files.address, DEFAULT_TENANT, self.files.credentials)
        self.store = Store(open_engine(self.place.store, self.env), self.env)
        self.manifests = Manifests(self.store.keyspace)
        self.bases = LakeBases(self.store, self.manifests, self.files, cache_bytes=cache_bytes)
        self.bases.load()
        self.store.use_bases(self.bases)
        self.table = table
        self._layouts = Layouts(self.store.keyspace)
        self._tasks = ProcessTasks(self.env)

    def close(self) -> None:
        self.bases.close()
        remote_handles.close(self.place)
        self.store.close()
        self.store.engine.close()

    @property
    def layout(self) -> Layout:
        return self._layouts.of(self.table)

    def writer(self) -> TableWriter:
        return TableWriter(self.layout, lambda id: self.layout, CONTEXT)

    def write(self, work: Any) -> Timestamp:
        txn = self.store.begin()
        work(txn)
        return txn.commit()

    def manifest(self, index: int = 1) -> Manifest:
        found = self.manifests.get(self.store.snapshot(), self.table.id, index)
        return found or no_base(self.table.id, index)

    def flush(self, index: int = 1, *, until_at: Timestamp | None = None, keep: Keep = KEEP_ALL) -> Manifest:
        """Up to now, or to a time at which all that is there was committed."""
        began_with, until_at = self.manifest(index), until_at or self.store.snapshot().at
        request = MergeRequest(TableVersion(self.table, ()), began_with, until_at, keep=keep)
        (merged,) = merge(self.store, self.place, [request], self._run)

        def work(txn: Transaction) -> None:
            publish(txn, self.store.keyspace, self.manifests, began_with, merged.edit, until_at)

        self.store.transact(work)
        return self.manifest(index)

    def flush_all(self) -> None:
        for index in self.table.indexes:
            self.flush(index.id)

    def clean(self, at: Timestamp | None = None, index: int = 1) -> int:
        manifest = self.manifest(index)
        cleaned_at = manifest.flushed_at if at is None else min(at, manifest.flushed_at)
        txn = self.store.begin()
        clean_some(txn, self.store.keyspace, manifest, cleaned_at, limit=1 << 30)
        txn.commit()
        return txn.removed

    def _run(self, kernel: Any, tasks: Any) -> list[Any]:
        return self._tasks.run(kernel, tasks, on_done=lambda done, total: None, check=lambda: None)
