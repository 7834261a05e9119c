"""A node on which every new index of a table with rows is filled by a merge, in this process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.snapshot import Snapshot
from tenure.node import Node
from tenure.pipeline.tasks import Tasks
from tenure.table.consistency import check_indexes
from tenure.table.lake.manifests import Manifest
from tenure.table.rows import Layout
from tests.unit.bulk.gates import Gate, held
from tests.unit.bulk.imports import Importing
from tests.unit.lake_nodes import lake_node
from tests.unit.sql.sessions import Said

SECONDS_MAX = 60.0


@contextmanager
def filling_node(directory: Path, address: str = "") -> Iterator[Node]:
    """It counts as one that has Spark; its store is a file, unless an address is given."""
    nodes: list[Node] = []

    def tasks() -> Tasks:
        return nodes[0].tasks.process

    with lake_node(directory, store=address or f"sqlite:{directory}/store.db", spark=tasks) as node:
        nodes.append(node)
        yield node


class Statement:
    """One that runs in a thread of its own."""

    def __init__(self, session: Importing, text: str) -> None:
        self._said: list[Said] = []
        self._talk = session.session()
        self._thread = threading.Thread(target=lambda: self._said.append(self._talk.say(text)))
        self._thread.start()

    def said(self) -> Said:
        self._thread.join(SECONDS_MAX)
        assert self._said, "the statement did not end"
        self._talk.close()
        return self._said[0]


class Filling(Importing):
    @contextmanager
    def during(self, text: str, kernel: str = "merge_range") -> Iterator[Statement]:
        """A statement that has read its rows, and goes on when this ends."""
        with held(self.node, kernel) as gate:
            statement = Statement(self, text)
            gate.wait()
            yield statement

    def table(self, name: str = "t") -> Table:
        ((id,),) = self.rows(f"SELECT '{self.name}.{name}'::regclass::oid::text")
        assert id is not None
        found = self.node.catalog.get(self.node.store.snapshot(), int(id))
        assert isinstance(found, Table)
        return found

    def layout(self) -> Layout:
        def enum(id: int):  # type: ignore[no-untyped-def]
            return self.node.catalog.get(self.node.store.snapshot(), id)

        return self.node.layouts.of(self.table(), enum)

    def wrong(self, at: Timestamp | None = None) -> list[str]:
        """What is wrong with the indexes at a time."""
        snapshot = self.node.store.snapshot() if at is None else self.node.store.snapshot(at)
        in_lake = [id for id, manifest in self.manifests(snapshot).items() if manifest.files]
        return check_indexes(snapshot, self.layout(), self.node.context(), left=in_lake)

    def manifests(self, snapshot: Snapshot | None = None) -> dict[int, Manifest]:
        """Of secondary indexes, those that are gone included: sweeps collect these in the background."""
        assert self.node.lake is not None
        table, snapshot = self.table(), snapshot or self.node.store.snapshot()
        found = self.node.lake.manifests.all(snapshot, table.id)
        return {each.index: each for each in found if each.index != table.primary}

    def filled_rows(self) -> list[int]:
        """How many rows the bases of secondary indexes have."""
        return [manifest.rows for manifest in self.manifests().values()]

    def flush(self, *, cleans: bool = False) -> None:
        """All indexes, as the upkeep would in time."""
        from tenure.bulk import flush
        from tenure.table.lake.publishing import clean_some

        lake, table = self.node.lake, self.table()
        assert lake is not None
        for index in table.indexes:
            id = index.id
            job = self.node.store.transact(
                lambda txn, id=id: flush.start(txn, lake, table.id, id, rows=0, name="t")  # type: ignore[misc]
            )
            assert job is not None, "something else merges it"
            self.until(lambda id=job.id: not self.is_open(id))  # type: ignore[misc]
            manifest = lake.manifests.get(self.node.store.snapshot(), table.id, id)
            assert manifest is not None
            if cleans:
                at = manifest.flushed_at
                self.node.store.transact(
                    lambda txn, each=manifest, at=at: clean_some(  # type: ignore[misc]
                        txn, self.node.store.keyspace, each, at, limit=1 << 20
                    )
                )

    def is_open(self, job: int) -> bool:
        return self.node.jobs.is_open(self.node.store.snapshot(), job)

    def until(self, is_so: Callable[[], object]) -> None:
        waited = threading.Event()
        for _ in range(int(SECONDS_MAX / 0.02)):
            if is_so():
                return
            waited.wait(0.02)
        raise AssertionError(f"not within {SECONDS_MAX} s")

    def job(self) -> int:
        """The newest schema change."""
        ((id,),) = self.rows("SELECT max(job_id) FROM tenure_internal.jobs WHERE job_type = 'schema change'")
        assert id is not None
        return int(id)


__all__ = ["Filling", "Gate", "Statement", "filling_node"]
