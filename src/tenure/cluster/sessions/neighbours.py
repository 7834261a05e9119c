"""Whether there are other nodes: asked often, so answered from memory.

The answer may be a moment old. So it serves where a mistake only costs work: a node that is alone skips
writes that only other nodes would read.

Walk: `composition.background` runs `follow` in a loop; `composition.cluster_layer` hands `is_alone` to the
row locks.
"""

from collections.abc import Callable, Sequence

from tenure.base.errors import SessionLost
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.follower import Follower
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.storage.engine import Revision

SPACING_SECONDS = 0.1
"""The time between two looks while others commit: nodes come and go seldom."""

FOLLOW_SECONDS = 1.0
"""How long one step of `follow` waits for changes at most."""


class Neighbours:
    def __init__(self, store: Store, sessions: Sessions, session: Callable[[], NodeSession]) -> None:
        self._sessions = sessions
        self._session = session
        self._present: set[SessionId] = set()
        self._follower = Follower(
            store, [sessions.span()], self._load, self._apply, spacing_seconds=SPACING_SECONDS
        )
        self._follower.load()

    def is_alone(self) -> bool:
        """Whether no session but this node's own existed a moment ago."""
        present = self._present
        if len(present) != 1:
            return not present
        try:
            return self._session().id in present
        except SessionLost:
            return False

    def follow(self) -> float:
        """Reads which nodes come and go: one step for a loop."""
        self._follower.step(FOLLOW_SECONDS)
        return 0.0

    def _load(self, snapshot: Snapshot) -> None:
        self._present = {each.id for each in self._sessions.list(snapshot)}

    def _apply(self, revisions: Sequence[Revision]) -> None:
        present = set(self._present)
        for revision in revisions:
            session = self._sessions.id_of(revision.key)
            if revision.value is None:
                present.discard(session)
            else:
                present.add(session)
        self._present = present

    def wake(self) -> None:
        """Ends the wait of a `follow` in progress."""
        self._follower.wake()

    def close(self) -> None:
        self._follower.close()
