"""Slows down clients that guess passwords, and no others for long.

After some free attempts, each further failure of a user from a network doubles the time until the next
attempt is checked. Success, or quiet for a while, resets it. A network is one IPv4 address or an IPv6 /64,
which one machine can fill with addresses of its own.

    failures   1  2  3  4     5     6     ...   from 11 on
    wait       0  0  0  0.25  0.5   1     ...   30 seconds

The table is bounded. A network that fails with ever new users shares one entry for those; if the table is
full, the entry that expires next is evicted.

Invariant (root-not-locked-out): `root` on this machine itself never waits.

Walk: `pgwire.login.authenticator` asks before it checks a proof and reports the result.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from tenure.catalog.descriptors.definitions import ROOT

FREE_FAILURES = 3
FIRST_WAIT_SECONDS, WAIT_SECONDS_MAX = 0.25, 30.0
FORGET_SECONDS = 600.0
ENTRIES_MAX = 4_096
USERS_PER_NETWORK_MAX = 32

_ANY_USER = ""
"""No user has this name."""
_Key = tuple[str, str]


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last: float = 0.0

    @property
    def open_from(self) -> float:
        """When the next attempt is checked."""
        extra = self.count - FREE_FAILURES
        return self.last + (
            min(FIRST_WAIT_SECONDS * 2 ** min(extra - 1, 16), WAIT_SECONDS_MAX) if extra > 0 else 0
        )


class Throttle:
    """Times are of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._failures: dict[_Key, _Failures] = {}
        self._users: dict[str, int] = {}
        """How many entries each network has."""

    def wait_seconds(self, user: str, address: str, now: float) -> float:
        """How long until this user's proof may be checked; ask again after that time."""
        if user == ROOT and is_loopback(address):
            return 0.0
        found = self._failures.get(self._key(user, address))
        return 0.0 if found is None else max(0.0, found.open_from - now)

    def failed(self, user: str, address: str, now: float) -> None:
        key = self._key(user, address)
        entry = self._failures.get(key)
        if entry is not None and now - entry.last > FORGET_SECONDS:
            self._forget(key)
            entry = None
        if entry is None:
            entry = self._add(key, now)
        entry.count += 1
        entry.last = now

    def succeeded(self, user: str, address: str) -> None:
        key = (user, network_of(address))
        if key in self._failures:
            self._forget(key)

    def __len__(self) -> int:
        return len(self._failures)

    def _key(self, user: str, address: str) -> _Key:
        network = network_of(address)
        if (user, network) in self._failures or self._users.get(network, 0) < USERS_PER_NETWORK_MAX:
            return user, network
        return _ANY_USER, network

    def _add(self, key: _Key, now: float) -> _Failures:
        if len(self._failures) >= ENTRIES_MAX:
            self._make_room(now)
        self._users[key[1]] = self._users.get(key[1], 0) + 1
        entry = self._failures[key] = _Failures()
        return entry

    def _make_room(self, now: float) -> None:
        """Drops expired entries; if there are none, the entry with the shortest wait."""
        stale = [key for key, each in self._failures.items() if now - each.last > FORGET_SECONDS]
        least = min(self._failures, key=lambda key: self._failures[key].open_from)
        for key in stale or [least]:
            self._forget(key)

    def _forget(self, key: _Key) -> None:
        del self._failures[key]
        self._users[key[1]] -= 1
        if not self._users[key[1]]:
            del self._users[key[1]]


def network_of(address: str) -> str:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"


def is_loopback(address: str) -> bool:
    """Whether it is this machine's own; "" is a unix socket's."""
    if not address:
        return True
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback
