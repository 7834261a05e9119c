"""The change signal inside a process: which subscribers are told of which commits.

A commit names the heads (tenant, table, index) that it wrote to, and only those subscribers are woken whose
spans hold keys with such a head. The poller for commits of other processes reads the spans that have
subscribers (`bounds`). If the written heads are not known, all subscribers are woken.

Invariant (signal-misses-none): a commit of this process wakes every subscriber of a span that it wrote to.

Walk: `Engine.subscribe` -> `Signals.subscribe`; the engine calls `wake` after each commit.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from tenure.base.env import Env
from tenure.storage.engine import HEAD_BYTES
from tenure.storage.head_spans import HeadSpans

Wake = Callable[[], None]


class _Subscriber(NamedTuple):
    wake: Wake
    bounds: tuple[tuple[bytes, bytes], ...]
    """For each span the head of its first key, and its end. Empty: every commit wakes the subscriber."""
    spans: HeadSpans

    def wants(self, heads: Collection[bytes]) -> bool:
        return not self.bounds or bool(self.spans.touched(heads))


class Signals:
    def __init__(self, env: Env) -> None:
        self._lock = env.lock()
        self._subscribers: tuple[_Subscriber, ...] = ()
        """Never changed in place: waking needs no lock."""

    def subscribe(self, wake: Wake, spans: Sequence[tuple[bytes, bytes]] = ()) -> Callable[[], None]:
        bounds = tuple(sorted((lo[:HEAD_BYTES], hi) for lo, hi in spans))
        subscriber = _Subscriber(wake, bounds, HeadSpans(bounds))
        with self._lock:
            self._subscribers += (subscriber,)
        return lambda: self._unsubscribe(subscriber)

    def _unsubscribe(self, subscriber: _Subscriber) -> None:
        with self._lock:
            self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)

    def bounds(self) -> set[tuple[bytes, bytes]]:
        """The spans that have subscribers: the head of the first key of each, and its end."""
        return {each for subscriber in self._subscribers for each in subscriber.bounds}

    def wake(self, heads: Collection[bytes] | None = None) -> None:
        """Called after a commit that wrote keys with these heads; None if the heads are not known."""
        for subscriber in self._subscribers:
            if heads is None or subscriber.wants(heads):
                subscriber.wake()
