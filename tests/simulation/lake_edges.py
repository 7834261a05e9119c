"""Operations of the lake's world at its edges: single keys beside an import's commit, and its very time.

An import's rows are in no key of the store. That somebody has read one of them before shows by the cleaned
mark alone, which the import's own commit moves: also for those who commit in the same group.

Walk: `lake_world.SHAPES` has them under their names.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.edge_shapes import edge_of_commit
from tests.simulation.tracing import TracingTransaction
from tests.simulation.workload import PLAIN

if TYPE_CHECKING:
    from tests.simulation.lake_world import LakeClient


def hold_one(client: "LakeClient") -> None:
    """Reads single rows, and writes elsewhere at once: right only if no import comes before it."""
    keys = [client.some_based() for _ in range(1 + client.pick(2))]

    def run(txn: TracingTransaction) -> None:
        for key in keys:
            txn.get(key)
        client.pause()
        txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def read_at_commit(client: "LakeClient") -> None:
    """Reads just before, at, and just after a commit: a write's, an import's, or what a base goes up to."""
    at = _edge_of_base(client) if client.maybe(0.5) else edge_of_commit(client)
    if at is None:
        return
    snapshot = client.store.snapshot_at(at)
    snapshot.get(client.some_based())
    client.pause()
    snapshot.scan(client.span, reverse=client.maybe(0.3))


def _edge_of_base(client: "LakeClient") -> int | None:
    """A time at which something of a base begins or ends."""
    bases = client.lake.bases.bases()
    times = [base.flushed_at for base in bases]
    times += [file.published_at for base in bases for file in base.manifest.files if file.published_at > 0]
    return max(0, times[client.pick(len(times))] + client.pick(3) - 1) if times else None


SHAPES: dict[str, Callable[["LakeClient"], None]] = {
    "hold one": hold_one,
    "read at commit": read_at_commit,
}

WEIGHTS: dict[str, float] = {"hold one": 2, "read at commit": 2}
"""In the mix of everything."""

PROFILES: dict[str, dict[str, float]] = {
    "imports": {"hold one": 6, "import": 4, "reopen": 1, "use": 1, "flush": 1, "read at commit": 1},
}
