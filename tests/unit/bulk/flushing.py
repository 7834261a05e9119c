"""A node with a lake whose flushes tests start and await."""

from collections.abc import Callable

from tenure.bulk import flush
from tenure.bulk.lakes import Lake
from tenure.node import NodeOptions
from tenure.table.lake.manifests import Manifest
from tests.unit.lake_nodes import LakeClient

PATIENCE_STEPS = 600


class FlushingNode(LakeClient):
    """A node whose indexes are flushed by hand."""

    def __init__(self, options: NodeOptions) -> None:
        super().__init__(options)
        assert self.node.lake is not None
        self.lake: Lake = self.node.lake

    def flush(self, table: str = "t", index: int = 1) -> int:
        """Flushes an index and waits; returns the job."""
        ((id,),) = self.run(f"SELECT '{table}'::regclass::oid::int8")
        job = self.node.store.transact(lambda txn: flush.start(txn, self.lake, id, index, rows=1, name=table))
        assert job is not None
        self.until(lambda: not self.node.jobs.is_open(self.node.store.snapshot(), job.id))
        return job.id

    def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(PATIENCE_STEPS):
            if holds():
                return
            self.env.sleep(0.05)
        raise AssertionError("it did not come to be")

    def manifest(self) -> Manifest:
        (manifest,) = self.lake.manifests.all(self.node.store.snapshot())
        return manifest

    def files(self) -> set[str]:
        tenant = str(self.lake.place.tenant)
        return {entry.name for page in self.lake.files.list(tenant) for entry in page}
