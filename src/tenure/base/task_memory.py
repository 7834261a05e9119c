"""The memory of bulk work in a node: each of its tasks is charged to the node while it runs.

    node            sql.node_memory
      bulk work     a quarter of it
        task        an eighth of it, at most 512 MiB: reserved as a whole, since libraries allocate it

The pipeline cuts its tasks so that each fits into its reservation. A task that finds no room waits for it;
after a while it runs all the same, and then statements are refused instead: a flush frees the store, so it
must make progress while statements hold all memory.

Invariant (bulk-charged): while a task runs in a node, its reservation is part of the node's charge.

Walk: `composition.table_layer` makes one -> `pipeline.tasks` calls `reserved` around each task.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tenure.base.env import Env
from tenure.base.errors import OutOfMemory
from tenure.base.interruptible import Check
from tenure.base.node_memory import NodeMemory

ROOM_SECONDS, LOOK_SECONDS = 10.0, 0.1
"""How long a task waits for room, and how often it looks."""

WHAT = "a task of bulk work"


class TaskMemory:
    def __init__(self, env: Env, memory: NodeMemory, releases: Sequence[Callable[[], None]] = ()) -> None:
        self._env = env
        self._memory = memory
        self._releases = releases
        """Called in the thread of a task when it is over: libraries keep what it has freed."""

    @property
    def task_bytes(self) -> int:
        return self._memory.limits.task()

    @contextmanager
    def reserved(self, check: Check) -> Iterator[None]:
        """Waits for room for a task, and charges it."""
        account, count = self._memory.bulk_work, self.task_bytes
        self._charge(count, check)
        try:
            yield
        finally:
            for release in self._releases:
                release()
            account.release(count)

    def _charge(self, count: int, check: Check) -> None:
        account, give_up = self._memory.bulk_work, self._env.monotonic() + ROOM_SECONDS
        while True:
            try:
                account.charge(count, WHAT)
                return
            except OutOfMemory:
                if self._env.monotonic() >= give_up:
                    account.take(count)
                    return
            check()
            self._env.sleep(LOOK_SECONDS)
