"""Connections that are logging in, and which of them makes room when there are too many.

    the network with the most of them  ─►  those who got least far  ─►  the one that came first

A login takes some milliseconds and each step of it brings the connection out of reach of those who are
behind. So a flood of connections that are silent, or stop half-way, evicts itself; and it evicts those of its
own network first.

Invariant (proceeding-stay): a connection makes room only when none of its network is less far.

Walk: `pgwire.hall` adds who arrives and asks for the `slowest`; `pgwire.door` removes who is in or gone.
"""

from typing import Generic, Protocol, TypeVar

from tenure.pgwire.startup import Progress
from tenure.pgwire.throttle import network_of


class Arriving(Protocol):
    @property
    def progress(self) -> Progress: ...


A = TypeVar("A", bound=Arriving)


class Arrivals(Generic[A]):
    def __init__(self) -> None:
        self._networks: dict[str, dict[A, None]] = {}
        """In the order of arrival."""
        self._network_of: dict[A, str] = {}

    def __len__(self) -> int:
        return len(self._network_of)

    def add(self, one: A, address: str) -> None:
        network = self._network_of[one] = network_of(address)
        self._networks.setdefault(network, {})[one] = None

    def remove(self, one: A) -> None:
        network = self._network_of.pop(one, None)
        if network is not None:
            members = self._networks[network]
            del members[one]
            if not members:
                del self._networks[network]

    def slowest(self) -> A:
        fullest = max(self._networks.values(), key=len)
        return min(fullest, key=lambda one: one.progress)
