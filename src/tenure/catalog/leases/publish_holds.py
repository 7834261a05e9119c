"""Descriptors that a publisher of this node has closed to new uses until it is done.

    hold(ids) ──► no new pins ──► those that are there end ──► the publisher commits ──► released

While a hold lasts and nothing here pins its descriptors, this node's own lease rows count as narrowed by it:
no transaction here uses the older version, and none can begin to. A publisher that ends in anything but a
plain refusal may have committed: its hold lasts, in doubt, until the scheme has applied the outcome.

Walk: a lease scheme calls `of` before it pins, and `freed` after it has unpinned; the schema changer holds
the descriptors that it is about to publish.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from tenure.base.env import Env, Event
from tenure.base.errors import RetryError, UserError
from tenure.base.interruptible import LOOK_SECONDS, current_check, unchecked

HELD_SECONDS = 1.0
"""How long a use that cannot be canceled waits for a publisher of its own node before it looks again."""


class Doubt(NamedTuple):
    """Descriptors that a publisher here may or may not have given a new version."""

    ids: list[int]
    event: Event


class PublishHolds:
    def __init__(
        self,
        env: Env,
        lock: AbstractContextManager[object],
        is_pinned: Callable[[Iterable[int]], bool],
        *,
        in_doubt: Callable[[], None] = lambda: None,
    ) -> None:
        self._env = env
        self._lock = lock
        """The scheme's own lock: holds and pins are read together."""
        self._is_pinned = is_pinned
        self._in_doubt = in_doubt
        """Called when a publisher does not know the outcome of its commit."""
        self._doubts: list[Doubt] = []
        self._held: dict[int, Event] = {}
        """By descriptor, the event that is set when the publisher is done."""
        self._freed = env.event()
        """Set whenever a held descriptor is no longer pinned."""

    def of(self, id: int) -> Event | None:
        """The event to wait for before this may be pinned; called under the scheme's lock."""
        return self._held.get(id)

    def has_any(self, ids: Iterable[int]) -> bool:
        """Whether one of these must not be pinned now; most of the time nothing is held at all."""
        return bool(self._held) and any(id in self._held for id in ids)

    def await_end(self, hold: Event) -> None:
        """Waits for the end of a hold, for a moment; the caller then checks again whether it may pin.

        A statement that was canceled meanwhile ends here.
        """
        check = current_check()
        with self._env.waiting():
            hold.wait(HELD_SECONDS if check is unchecked else LOOK_SECONDS)
        check()

    def freed(self, id: int) -> None:
        """Called under the scheme's lock when nothing pins this any more."""
        if id in self._held:
            self._freed.set()

    @contextmanager
    def hold(self, ids: Iterable[int], *, timeout: float) -> Iterator[bool]:
        """Lets no transaction here begin to use these; yields whether none does, after `timeout` at most."""
        wanted = sorted(set(ids))
        deadline = self._env.monotonic() + timeout
        event = self._env.event()
        while not self._take(wanted, event):
            if self._env.monotonic() >= deadline:
                yield False
                return
            self._await_release(wanted, deadline)
        try:
            yield self._await_unpinned(wanted, deadline)
        except (RetryError, UserError):
            self._release(wanted, event)
            raise
        except BaseException:
            with self._lock:
                self._doubts.append(Doubt(wanted, event))
            self._in_doubt()
            raise
        self._release(wanted, event)

    def _release(self, ids: list[int], event: Event) -> None:
        with self._lock:
            for id in ids:
                del self._held[id]
        event.set()

    def doubts(self) -> list[Doubt]:
        with self._lock:
            return list(self._doubts)

    def end(self, doubts: Iterable[Doubt]) -> None:
        """Called when the outcomes of these have been applied."""
        for doubt in doubts:
            with self._lock:
                is_open = doubt in self._doubts
                if is_open:
                    self._doubts.remove(doubt)
            if is_open:
                self._release(*doubt)

    def _take(self, ids: list[int], event: Event) -> bool:
        with self._lock:
            if any(id in self._held for id in ids):
                return False
            self._held.update(dict.fromkeys(ids, event))
            return True

    def _await_release(self, ids: list[int], deadline: float) -> None:
        with self._lock:
            held = next((self._held[id] for id in ids if id in self._held), None)
        if held is not None:
            with self._env.waiting():
                held.wait(max(0.0, deadline - self._env.monotonic()))

    def _await_unpinned(self, ids: list[int], deadline: float) -> bool:
        while True:
            self._freed.clear()  # cleared before looking, so that a later release is not missed
            if not self._is_pinned(ids):
                return True
            left = deadline - self._env.monotonic()
            if left <= 0:
                return False
            with self._env.waiting(holds=True):
                self._freed.wait(left)
