"""The turns of the door's loop: how long each takes, and when one has to yield to others.

    begin ── messages of one client ── end        more than 50 ms: counted, and its statement logged, with
                 │                                the part of it that the loop's thread computed
                 └─ more than 20 ms: `is_over`, the rest of the input waits until others had their turn

Each statement that runs on the loop is cheap by proof (`sql.session.inline`); but a client may send many at
once. A turn that was long though it computed little has waited for the GIL or for a processor: then other
threads or other processes take the time, and not the statement that is logged.

Walk: `pgwire.server` makes the `Turns`, which begin and end around each callback; `pgwire.conversation` asks
`is_over`.
"""

import logging
from collections.abc import Callable

from tenure.sql.session.answers import Client
from tenure.sql.session.long_turns import LONG_TURN_SECONDS, LongTurns

TURN_SECONDS = 0.02
"""After this a client's further messages wait for the next turn."""

STATEMENT_CHARS_MAX = 1_000
"""How much of a statement is logged."""

_log = logging.getLogger(__name__)


class Turns:
    """The turns of one loop, which does one thing at a time."""

    __slots__ = ("_began", "_computed", "_counted", "_monotonic", "_thread_seconds")

    def __init__(
        self, monotonic: Callable[[], float], thread_seconds: Callable[[], float], counted: LongTurns
    ) -> None:
        self._monotonic = monotonic
        self._thread_seconds = thread_seconds
        """What the calling thread has computed so far."""
        self._counted = counted
        self._began = monotonic()
        self._computed = thread_seconds()

    def begin(self) -> None:
        self._computed = self._thread_seconds()
        self._began = self._monotonic()

    def is_over(self) -> bool:
        return self._monotonic() - self._began > TURN_SECONDS

    def end(self, client: Client | None) -> None:
        took = self._monotonic() - self._began
        if took > LONG_TURN_SECONDS:
            self._counted.add(took)
            doing = "commits, or a login" if client is None else client.doing[:STATEMENT_CHARS_MAX]
            computed = 1000 * (self._thread_seconds() - self._computed)
            _log.warning("a turn of the loop took %.0f ms, computing %.0f: %s", 1000 * took, computed, doing)


def untimed() -> Turns:
    """Turns without a loop: no time passes."""
    return Turns(lambda: 0.0, lambda: 0.0, LongTurns())
