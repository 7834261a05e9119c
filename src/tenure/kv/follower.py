"""Followers: how state in memory, or a wait, follows a watch.

    Follower     load ──► changes ──► apply ──► changes ──► apply ...      state in memory
                   ▲                    │ raises            │ a gap
                   └────────────────────┴───────────────────┘
    ChangeWait   wait ──► a change, a gap or the timeout ──► the caller looks at the store itself

A gap (`kv.gaps`) means that changes are missing. A follower then loads everything again, for any reason of
the gap: it keeps the state of its spans, not their history. A wait continues from now: its caller reads the
store after the wait has returned, and sees what the watch has missed.

Invariant (follower): after a step that returned, the state that `load` and `apply` have put in memory is the
state of the spans at `resolved_at`, which never goes back.

Walk: `cluster.settings`, `cluster.sessions.neighbours`, `cluster.jobs.runner`, `table.lake.bases` and others
keep a `Follower`; `cluster.locks.lock_waits`, `catalog.leases.lease_waits` and others a `ChangeWait`; both
call `Watch.next`.
"""

import logging
from collections.abc import Callable, Sequence

from tenure.base.timestamp import Timestamp, to_text
from tenure.kv.gaps import Gap
from tenure.kv.keys import Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.watch import Watch
from tenure.storage.engine import Revision

_log = logging.getLogger(__name__)


class Follower:
    """Keeps state in memory that is derived from spans; one thread calls `load` and `step`."""

    def __init__(
        self,
        store: Store,
        spans: Sequence[Span],
        load: Callable[[Snapshot], None],
        apply: Callable[[Sequence[Revision]], None] | None = None,
        *,
        spacing_seconds: float = 0.0,
    ) -> None:
        """`load` reads the whole state, `apply` applies changes to it; without `apply` each change loads it
        anew.
        """
        self._store = store
        self._spans = spans
        self._load = load
        self._apply = apply
        self._spacing_seconds = spacing_seconds
        self._watch: Watch | None = None
        self._is_current = False
        """Whether memory holds the state at `resolved_at`: not before the first load, nor after an error."""

    @property
    def resolved_at(self) -> Timestamp:
        """The time of the state in memory."""
        assert self._watch is not None, "not loaded yet"
        return self._watch.resolved_at

    def load(self) -> None:
        """Loads the current state; from there on `step` applies changes."""
        self._is_current = False
        snapshot = self._store.snapshot()
        if self._watch is None:
            self._watch = self._store.watch(
                self._spans, since_at=snapshot.at, spacing_seconds=self._spacing_seconds
            )
        else:
            self._watch.resume(snapshot.at)
        self._load(snapshot)
        self._is_current = True

    def step(self, seconds: float | None = None) -> bool:
        """Waits for changes and applies them; False if there were none in time, or `wake` was called.

        If it raises, the next step loads.
        """
        if self._watch is None or not self._is_current:
            self.load()
            return True
        change = self._watch.next(seconds, changes_only=True)
        if isinstance(change, Gap):
            _log.info("changes up to %s are missing (%s): all is loaded again", *_described(change))
            self.load()
        elif not change.revisions:
            return False
        elif self._apply is None:
            self.load()
        else:
            self._is_current = False
            self._apply(change.revisions)
            self._is_current = True
        return True

    def wake(self) -> None:
        """Ends the wait of a step in progress."""
        if self._watch is not None:
            self._watch.wake()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()


def _described(gap: Gap) -> tuple[str, str]:
    return to_text(gap.at), gap.reason.value


class ChangeWait:
    """Wakes a caller that reads the store itself, whenever a key of some spans has changed."""

    def __init__(
        self, store: Store, spans: Sequence[Span], *, since_at: Timestamp, spacing_seconds: float = 0.0
    ) -> None:
        """`since_at` is the time of the caller's last read."""
        self._store = store
        self._watch = store.watch(spans, since_at=since_at, spacing_seconds=spacing_seconds)

    def wait(self, seconds: float) -> None:
        """Returns when the caller should read again: after a change, a gap, `seconds`, or a call of
        `wake`.
        """
        change = self._watch.next(seconds, changes_only=True)
        if isinstance(change, Gap):
            self._watch.resume(self._store.snapshot().at)

    def wake(self) -> None:
        self._watch.wake()

    def close(self) -> None:
        self._watch.close()
