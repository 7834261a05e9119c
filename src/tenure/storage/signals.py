"""Who wants to be told of commits, and of which: the change signal inside a process.

A commit names the heads (tenant, table, index) that it wrote to, and only those are woken whose spans hold
keys with such a head. Who looks for commits of other processes asks where anybody wants to hear of them
(`bounds`); where it is not known what was written, everybody is woken.

Invariant (signal-misses-none): whoever asked for a span that a commit of this process wrote to is woken.

Walk: `Engine.subscribe` -> `Signals.subscribe`; the engine calls `wake` after each commit.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from tenure.base.env import Env
from tenure.storage.engine import HEAD_BYTES

Wake = Callable[[], None]


class _Subscriber(NamedTuple):
    wake: Wake
    bounds: tuple[tuple[bytes, bytes], ...]
    """Of each span: the head of its first key, and its end. Empty: wants to be told of everything."""

    def wants(self, heads: Collection[bytes]) -> bool:
        return not self.bounds or any(first <= head < end for head in heads for first, end in self.bounds)


class Signals:
    def __init__(self, env: Env) -> None:
        self._lock = env.lock()
        self._subscribers: tuple[_Subscriber, ...] = ()
        """Never changed in place: to wake them needs no lock."""

    def subscribe(self, wake: Wake, spans: Sequence[tuple[bytes, bytes]] = ()) -> Callable[[], None]:
        subscriber = _Subscriber(wake, tuple((lo[:HEAD_BYTES], hi) for lo, hi in spans))
        with self._lock:
            self._subscribers += (subscriber,)
        return lambda: self._unsubscribe(subscriber)

    def _unsubscribe(self, subscriber: _Subscriber) -> None:
        with self._lock:
            self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)

    def bounds(self) -> set[tuple[bytes, bytes]]:
        """The spans that anybody wants to be told of: the head of the first key of each, and its end."""
        return {each for subscriber in self._subscribers for each in subscriber.bounds}

    def wake(self, heads: Collection[bytes] | None = None) -> None:
        """After a commit that wrote keys with these heads; None: nobody knows which."""
        for subscriber in self._subscribers:
            if heads is None or subscriber.wants(heads):
                subscriber.wake()
