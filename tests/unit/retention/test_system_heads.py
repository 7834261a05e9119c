"""A node that runs for half an hour with nothing but heartbeats, jobs and sweeps stays as large as it was."""

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.base.env import SystemEnv
from tenure.base.settings import GC_SYSTEM_TTL, JOBS_RETENTION
from tenure.cluster.jobs.job_retention import JobRetention
from tenure.cluster.jobs.job_states import JobState
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.unit.retention.sweeping import SweptStore

TTL = 60
MINUTES = 30
GROWTH_MAX = 1.3
"""Between the tenth minute and the thirtieth: what grows with time would have grown by half at least. The
size of the WAL was seen to vary by a fifth."""


class Sizes(NamedTuple):
    past_rows: int
    rows: int
    """Keys, tombstones too."""
    file_bytes: int
    wal_bytes: int
    memory_blocks: int
    """Objects in the memory of this process."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SweptStore]:
    node = SweptStore(SqliteEngine(str(tmp_path / "store.db"), SystemEnv()))
    node.set_ttl(TTL)
    node.settings = node.settings.with_value(GC_SYSTEM_TTL, float(TTL)).with_value(JOBS_RETENTION, 120.0)
    yield node
    node.engine.close()


def test_heartbeats_jobs_and_sweeps_keep_store_wal_and_memory_flat(node: SweptStore, tmp_path: Path) -> None:
    retention = JobRetention(node.store, node.jobs, lambda: node.settings)
    sizes = []
    for _ in range(MINUTES):
        for _ in range(12):
            node.env.advance(5.0)
            node.member.liveness.step()
        _run_job(node)
        node.sweep()
        retention.step()
        assert isinstance(node.engine, SqliteEngine)
        node.engine.checkpoint()  # as its loop does
        sizes.append(_sizes(node, tmp_path))
    for name in Sizes._fields:
        of_name: Callable[[Sizes], int] = lambda each, name=name: getattr(each, name)  # type: ignore[misc] # noqa: E731
        first, last = max(map(of_name, sizes[5:12])), max(map(of_name, sizes[-7:]))
        assert last <= GROWTH_MAX * first, f"{name} has grown from {first} to {last}"


def _sizes(node: SweptStore, directory: Path) -> Sizes:
    gc.collect()
    file, wal = (directory / f"store.db{suffix}" for suffix in ("", "-wal"))
    blocks = sys.getallocatedblocks()
    return Sizes(node.past_rows(), _rows(node), file.stat().st_size, wal.stat().st_size, blocks)


def _run_job(node: SweptStore) -> None:
    job = node.member.create_job()
    run = node.claim(job)
    for percent in range(10):
        run.checkpoint(fraction=percent / 10)
    node.transact(lambda txn: node.jobs.step(txn, run.fence, JobState.SUCCEEDED))


def _rows(node: SweptStore) -> int:
    """The keys of the tenant, tombstones too."""
    return len({key for key, _, _ in node._all(node.keyspace.all())})
