"""Whether other nodes are about: asked often, so answered from memory.

What it says may be a moment old. So it serves where a mistake costs work and no more: a node that is
alone spares itself what only others would look at.

Walk: `node.py` runs `follow` in a loop; `cluster.locks.row_locks` asks `is_alone` before it writes a record,
`catalog.leases.node_leases` how often it is to look.
"""

from collections.abc import Callable

from tenure.base.errors import BaseMoved, SessionLost, SnapshotTooOld
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.store import Store
from tenure.kv.watch import Watch

GAP_SECONDS = 0.1
"""Between two looks while others commit: nodes come and go seldom."""

FOLLOW_SECONDS = 1.0
"""How long one step of `follow` waits for news at most."""


class Neighbours:
    def __init__(self, store: Store, sessions: Sessions, session: Callable[[], NodeSession]) -> None:
        self._store = store
        self._sessions = sessions
        self._session = session
        self._present: set[SessionId] = set()
        self._watch = self._start()

    def is_alone(self) -> bool:
        """Whether no session but this node's own is known to be there, as of a moment ago."""
        present = self._present
        if len(present) != 1:
            return not present
        try:
            return self._session().id in present
        except SessionLost:
            return False

    def follow(self) -> float:
        """Learns who comes and goes: one step for a loop."""
        try:
            batch = self._watch.next(FOLLOW_SECONDS, changes_only=True)
        except (SnapshotTooOld, BaseMoved):
            self._watch.close()
            self._watch = self._start()
            return 0.0
        present = set(self._present)
        for revision in batch.revisions:
            session = self._sessions.id_of(revision.key)
            if revision.value is None:
                present.discard(session)
            else:
                present.add(session)
        self._present = present
        return 0.0

    def _start(self) -> Watch:
        snapshot = self._store.snapshot()
        self._present = {each.id for each in self._sessions.list(snapshot)}
        return self._store.watch([self._sessions.span()], since_at=snapshot.at, gap_seconds=GAP_SECONDS)

    def wake(self) -> None:
        """Ends the wait of a `follow` in progress."""
        self._watch.wake()

    def close(self) -> None:
        self._watch.close()
