"""What a node has started, in order; it is taken down in reverse, also when a later part fails to start.

Walk: `node.py` enters a `Lifecycle` and calls `keep` and `stop`; builders such as `composition.cluster_layer`
call `on_stop` for what is closed, `run` for loops.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType

from tenure.base.env import Env
from tenure.base.errors import TenureError
from tenure.base.loops import Loop, Loops, Step
from tenure.base.settings import LIVENESS_TTL, Settings

_log = logging.getLogger("tenure.node")


class Lifecycle:
    def __init__(self, env: Env, settings: Settings) -> None:
        self._env = env
        self._undo = ExitStack()
        self.settings: Callable[[], Settings] = lambda: settings
        """The settings of the cluster, once they are read."""

    def __enter__(self) -> "Lifecycle":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes everything down, unless the node has been started and `keep` was called."""
        self._undo.__exit__(kind, error, trace)

    def keep(self) -> "Lifecycle":
        """Called when the node has started: ownership passes to the returned lifecycle."""
        kept = Lifecycle(self._env, self.settings())
        kept._undo = self._undo.pop_all()
        return kept

    def stop(self) -> None:
        self._undo.close()

    def on_stop(self, close: Callable[[], object]) -> None:
        self._undo.callback(close)

    def on_stop_close(self, name: str, close: Callable[[], None]) -> None:
        """For parts that write to the store when they close: a store that is away must not keep a node from
        stopping.
        """
        self._undo.callback(_close, name, close)

    def loop(self, name: str, step: Step, interrupt: Callable[[], None] = lambda: None) -> Loop:
        """A loop at the pace of liveness: after errors too it comes back well within a session's ttl."""
        ttl_seconds = self.settings()[LIVENESS_TTL]
        return Loop(
            name,
            step,
            self._env,
            interval_seconds=ttl_seconds,
            backoff_max_seconds=ttl_seconds / 8,
            log=_log,
            interrupt=interrupt,
        )

    def run(self, *members: Loop) -> None:
        """Starts loops, which are stopped together."""
        loops = Loops(members)
        self._undo.callback(loops.stop)
        loops.start()


def _close(name: str, close: Callable[[], None]) -> None:
    try:
        close()
    except TenureError as error:
        _log.warning("closing the %s: %s", name, error)
