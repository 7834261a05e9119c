"""The upkeep of an open engine: checkpoints of its file, comparisons of the node's clock.

Walk: `composition.storage_layer` runs the loops as long as its store is open.
"""

import logging
from collections.abc import Callable

from tenure.base.clock import check_offset
from tenure.base.env import Env
from tenure.base.loops import Loop
from tenure.storage.addresses import OpenEngine
from tenure.storage.sqlite.sqlite_engine import SqliteEngine

CHECKPOINT_SECONDS = 0.2
"""Short enough that the WAL stays small under full load, long enough to cost nothing when idle."""

CLOCK_CHECK_SECONDS = 5.0
"""Commits check the offset themselves; this says it in the log before one is refused."""

_log = logging.getLogger(__name__)


def upkeep(engine: OpenEngine, env: Env, max_offset_micros: Callable[[], int]) -> list[Loop]:
    def check_clock() -> None:
        check_offset(
            node_micros=env.wall_micros(),
            engine_micros=engine.wall_micros(),
            max_offset_micros=max_offset_micros(),
        )

    loops = [Loop("clock check", check_clock, env, interval_seconds=CLOCK_CHECK_SECONDS, log=_log)]
    if isinstance(engine, SqliteEngine):
        step = engine.checkpoint
        loops.append(Loop("checkpointer", step, env, interval_seconds=CHECKPOINT_SECONDS, log=_log))
    return loops
