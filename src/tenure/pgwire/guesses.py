"""Slows down clients that guess the keys by which statements are cancelled.

A key of protocol 3.0 has four bytes. Each wrong one, and each request for another process, which cannot be
checked here, takes one from the allowance of its network, which grows back slowly. When nothing is left, the
next request waits before it is checked. At ten a second a key is found in some seven years.

    allowance    BURST at most ── minus 1 for each wrong guess ── plus RATE each second

Longer keys cannot be guessed and are checked at once.

Invariant (guesses-slowed): from one network no more than BURST guesses are checked, and RATE a second.

Walk: `pgwire.login.startup` asks before it checks a key and reports the result.
"""

from tenure.pgwire.login.throttle import network_of

BURST, RATE = 50, 10.0
ENTRIES_MAX = 4_096


class Guesses:
    """Times are of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._whole_at: dict[str, float] = {}
        """When each network has its whole allowance again; the order is that of the last guess."""

    def wait_seconds(self, address: str, now: float) -> float:
        """How long until the next request from there is checked; ask again after that time."""
        whole_at = self._whole_at.get(network_of(address), now)
        return max(0.0, whole_at - now - (BURST - 1) / RATE)

    def guessed(self, address: str, now: float) -> None:
        network = network_of(address)
        whole_at = self._whole_at.pop(network, now)
        self._whole_at[network] = max(now, whole_at) + 1 / RATE
        if len(self._whole_at) > ENTRIES_MAX:
            del self._whole_at[min(self._whole_at, key=self._whole_at.__getitem__)]

    def __len__(self) -> int:
        return len(self._whole_at)
