"""Connections that are logging in, and which of them is closed when there are too many.

    the network with the most of them ─► those at the earliest step ─► the user with the most ─► the oldest

A login takes some milliseconds, and each step protects the connection from eviction in favour of those behind
it. So a flood of connections that are silent, or stop half-way, evicts itself; and it evicts those of its own
network first. If only a few are silent, they have just arrived, and their first bytes were not read yet: less
than an eighth of a network's connections are passed over.

Invariant (proceeding-stay): a connection is evicted only when none of its network is at an earlier step, but
for a few that have just arrived.

Walk: `pgwire.threads.server_state` adds arriving connections and asks for the `slowest`; a door reports
progress, and removes connections that are logged in or gone.
"""

from typing import Generic, NamedTuple, TypeVar

from tenure.pgwire.login.startup import Progress
from tenure.pgwire.login.throttle import network_of

A = TypeVar("A")

FEW_SHARE = 8
"""One of so many are few."""


class Step(NamedTuple):
    """How far a login has come, and the user it names, if it has named one."""

    progress: Progress
    user: str


class _Network(Generic[A]):
    def __init__(self) -> None:
        self.size = 0
        self._steps: dict[Step, dict[A, None]] = {}
        """In the order of arrival at the step."""

    def add(self, one: A, step: Step) -> None:
        self._steps.setdefault(step, {})[one] = None
        self.size += 1

    def remove(self, one: A, step: Step) -> None:
        del self._steps[step][one]
        if not self._steps[step]:
            del self._steps[step]
        self.size -= 1

    def slowest(self) -> A:
        silent = sum(len(group) for step, group in self._steps.items() if step.progress is Progress.SILENT)
        has_flood = silent * FEW_SHARE >= self.size
        least = min(
            each.progress for each in self._steps if has_flood or each.progress is not Progress.SILENT
        )
        groups = [group for step, group in self._steps.items() if step.progress is least]
        largest = max(groups, key=len)
        return next(iter(largest))


class Arrivals(Generic[A]):
    def __init__(self) -> None:
        self._networks: dict[str, _Network[A]] = {}
        self._places: dict[A, tuple[str, Step]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def move(self, one: A, address: str, progress: Progress, user: str) -> None:
        """Called when it has arrived, or reached a later step."""
        place = network_of(address), Step(progress, user)
        if self._places.get(one) != place:
            self.remove(one)
            self._places[one] = place
            self._networks.setdefault(place[0], _Network()).add(one, place[1])

    def remove(self, one: A) -> None:
        place = self._places.pop(one, None)
        if place is not None:
            network = self._networks[place[0]]
            network.remove(one, place[1])
            if not network.size:
                del self._networks[place[0]]

    def slowest(self) -> A:
        return max(self._networks.values(), key=lambda network: network.size).slowest()
