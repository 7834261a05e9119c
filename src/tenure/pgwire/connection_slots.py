"""Connected clients: limits, the pids by which a connection is canceled, and their secrets.

    pid = instance * 2^16 + number     the instance names the process that has the connection

A node that loses its session may get another instance id, and another node its former one. Pids have the new
id from then on. Connections keep the pids that they were told: this process still cancels them, but a request
that reaches another process goes to the node that has the id now.

Some seats are reserved for root, so that an operator can connect to a full node. No other user has more than
a share of the seats, so that one cannot keep the others out. Connections that have not logged in yet take no
seat; they are few, as the server limits them too.

Invariant (cancel-needs-secret): a request to cancel has an effect only with the connection's secret.
Invariant (root-gets-in): other users never take the seats that are reserved for root.

Walk: `pgwire.login.startup` takes a seat after the login and asks for cancels; `pgwire.server` leaves it.
"""

import hmac
import secrets
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from tenure.base.errors import TooManyConnections
from tenure.catalog.descriptors.definitions import ROOT
from tenure.cluster.cancels import CANCEL, PIDS, TERMINATE, first_pid, has_pid

SEATS_MAX = 5000
"""The door uses about 5 kB for each, its session more. More clients need a pooler."""

KEPT_FOR_ROOT = 3
"""As PostgreSQL's superuser_reserved_connections."""

SECRET_BYTES_OLD, SECRET_BYTES = 4, 32
"""Protocol 3.0 has room for four bytes; 3.2 lets the server choose, up to 256."""


class Seat(NamedTuple):
    pid: int
    secret: bytes
    user: str
    cancel: Callable[[], None]
    terminate: Callable[[], None]


class ConnectionSlots:
    def __init__(
        self,
        instance: Callable[[], int],
        *,
        seats_max: int = SEATS_MAX,
        kept_for_root: int = KEPT_FOR_ROOT,
        user_seats_max: Callable[[], int] = lambda: SEATS_MAX,
    ) -> None:
        assert kept_for_root < seats_max < PIDS
        self._instance = instance
        self._seats_max = seats_max
        self._kept_for_root = kept_for_root
        self._last_number = 0
        self._user_seats_max = user_seats_max
        self._occupied: dict[int, Seat] = {}
        self._users: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._occupied)

    def take(
        self,
        user: str,
        cancel: Callable[[], None],
        *,
        secret_bytes: int,
        terminate: Callable[[], None] = lambda: None,
    ) -> Seat:
        if len(self._occupied) >= self._seats_max:
            raise TooManyConnections("sorry, too many clients already")
        if user != ROOT and len(self._occupied) >= self._seats_max - self._kept_for_root:
            raise TooManyConnections(f'remaining connection slots are reserved for "{ROOT}"')
        if user != ROOT and self._users[user] >= self._user_seats_max():
            raise TooManyConnections(
                f'too many connections for role "{user}"',
                hint="Close some, or have the cluster setting sql.user_connections_max raised.",
            )
        seat = Seat(self._free_pid(), secrets.token_bytes(secret_bytes), user, cancel, terminate)
        self._occupied[seat.pid] = seat
        self._users[user] += 1
        return seat

    def _free_pid(self) -> int:
        """Numbers go round, so that a late cancel seldom hits a new connection with an old number."""
        while True:
            self._last_number = self._last_number % (PIDS - 1) + 1
            pid = first_pid(self._instance()) + self._last_number
            if pid not in self._occupied:
                return pid

    def leave(self, seat: Seat) -> None:
        if self._occupied.pop(seat.pid, None) is not None:
            self._users[seat.user] -= 1
            if not self._users[seat.user]:
                del self._users[seat.user]

    def has(self, pid: int) -> bool:
        """Whether it is of the instance that this process is now, taken or not."""
        return has_pid(self._instance(), pid)

    def cancel(self, pid: int, secret: bytes) -> bool:
        """Returns whether the secret was right; the requesting client is told nothing in either case."""
        seat = self._occupied.get(pid)
        is_right = seat is not None and hmac.compare_digest(seat.secret, secret)
        if seat is not None and is_right:
            seat.cancel()
        return is_right

    def cancel_by_digest(self, pid: int, request: bytes) -> None:
        """The same for a request that another process took: the digest of a secret, or what somebody asks for
        who needs none.
        """
        seat = self._occupied.get(pid)
        if seat is None:
            return
        if request == TERMINATE:
            seat.terminate()
        elif request == CANCEL or hmac.compare_digest(sha256(seat.secret).digest(), request):
            seat.cancel()
