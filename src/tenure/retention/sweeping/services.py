"""The parts of a node that sweeps use.

Walk: `composition.sweep_layer` makes one; the modules of `retention.sweeping` are given it.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenure.base.settings import Settings
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.cluster.jobs.job_table import Jobs
from tenure.kv.keys import Keyspace
from tenure.kv.store import Store
from tenure.retention.tracking.tracker import Tracker
from tenure.table.lake.keep import Keep
from tenure.table.lake.manifests import Manifests
from tenure.table.lake.publishing import Merges
from tenure.table.sequences import Sequences

StartMerge = Callable[[int, int, Keep, frozenset[str]], int]
"""Starts a merge of an index that rewrites some past files by a pair; returns its job, 0 if another merge is
under way.
"""


class SweepServices(NamedTuple):
    store: Store
    catalog: Catalog
    publisher: Publisher
    jobs: Jobs
    tracker: Tracker
    manifests: Manifests
    merges: Merges
    sequences: Sequences
    settings: Callable[[], Settings]
    start_merge: StartMerge | None = None
    """None on a node without a lake."""

    @property
    def keyspace(self) -> Keyspace:
        return self.store.keyspace
