"""How far away the server is, and what a statement's thread does while it waits for an answer from there.

A node lets few statements compute at once. One that waits for a server at a distance of many milliseconds
does not compute, so its thread gives up its place for as long: otherwise eight places and 50 ms would be the
limit of a node with any number of clients. It takes a place again at once, because it may
hold a lock of the node that others wait for. Where the server is near, changing places would cost more than
the wait.

Invariant (far-holds-no-place): a statement that waits for a far server takes no place from running ones.

Walk: `storage.postgres.session` crosses it with each statement.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from tenure.base.env import Env

FAR_SECONDS = 0.005
"""An answer that takes longer is worth leaving the place; a server in the same network takes a tenth."""

NEWEST_WEIGHT = 0.1
"""The share of the newest answer in the mean: one slow statement does not make a near server far."""


class Distance:
    def __init__(self, env: Env) -> None:
        self._env = env
        self._seconds = 0.0
        """How long answers take, of late. Threads may overwrite each other's: it is a hint."""

    @property
    def is_far(self) -> bool:
        return self._seconds > FAR_SECONDS

    @contextmanager
    def crossed(self) -> Iterator[None]:
        """Wraps a statement that is sent to the server, until its answer is there."""
        began = self._env.monotonic()
        with self._env.waiting(holds=True) if self.is_far else nullcontext():
            yield
        self._seconds += NEWEST_WEIGHT * (self._env.monotonic() - began - self._seconds)
