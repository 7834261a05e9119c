"""When a send may start: while the node session lasts longer than the send may take.

    now ────────── time-out ──────────►│      F: the session's expiration
         the send is over by then      └─ room for other clocks

A sink cannot be fenced: what a run has sent is sent, even if another run has the job by then. The job moves
to another node only after F. So a send that starts early enough, and ends at its deadline, is over before
another run can start. Where a node is too late (its heartbeats do not get through), it waits, and sends
nothing.

Walk: `changefeed.job` makes one per run; sinks call `wait` before each send.
"""

from collections.abc import Callable

from tenure.base.errors import SessionLost
from tenure.base.feed_settings import SINK_TIMEOUT
from tenure.base.settings import LIVENESS_TTL, MAX_OFFSET
from tenure.base.timestamp import seconds_between
from tenure.cluster.jobs.runs import Run
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.store import Store

TTL_SHARE = 0.25
"""Of a session's time, for one send: heartbeats come at least twice in it, so that as much is often left."""

LOOK_SECONDS = 0.05
"""How often a run that may not send looks again."""


class SendWindow:
    def __init__(self, store: Store, session: Callable[[], NodeSession], run: Run) -> None:
        self._store = store
        self._session = session
        self._run = run

    def wait(self) -> float:
        """Returns the deadline of a send that starts now. Raises Stopped or SessionLost."""
        while True:
            self._run.check()
            # Read first: a process that stands still after this has less time left, not more.
            now = self._store.env.monotonic()
            settings = self._store.settings
            seconds: float = min(settings[SINK_TIMEOUT], settings[LIVENESS_TTL] * TTL_SHARE)
            if self._seconds_left() > seconds + settings[MAX_OFFSET]:
                return now + seconds
            self._run.sleep(LOOK_SECONDS)

    def _seconds_left(self) -> float:
        session = self._session()
        if session.id != self._run.fence.session:
            raise SessionLost("the session that has claimed the changefeed is gone")
        return seconds_between(self._store.clock.now(), session.expires_at)
