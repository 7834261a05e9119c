"""The channels that a session listens to, what it notifies of, and what has arrived for it.

    LISTEN, UNLISTEN    at once outside of a block; in one when it commits, unless a savepoint took them back
    NOTIFY              a record in the transaction (`cluster.notifications`)
    arrive              kept until the client is told: outside of transactions only

To listen, the session is first made known to the node and then reads the store's clock: what is committed
after that arrives, and what arrives of before is dropped.

Walk: `sql.session.session_state` holds a `SessionChannels`; `statements.session.notifying` calls `listen`,
`unlisten` and `notify`, `sql.execution.session_transactions` calls `before_commit` and `end_transaction`;
`sql.clients.session` calls `take` for the door.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tenure.base.env import Env
from tenure.base.errors import InvalidParameter, LimitExceeded, ReadOnlyTransaction, Terminated
from tenure.base.timestamp import Timestamp
from tenure.cluster.notifications import Arrival, Notifications
from tenure.sql.session.block import Block, Savepoint

PAYLOAD_BYTES_END = 8_000
CHANNEL_BYTES_MAX = 63
"""As in PostgreSQL."""

CHANNELS_MAX = 10_000
"""Channels of one session: each costs memory of the node."""

ARRIVED_BYTES_MAX = 16 * 2**20
"""What may wait for a client that stays in a transaction; then its session ends."""

ARRIVAL_BYTES = 200
"""What an arrival takes besides its payload."""

OWN_SECONDS = 1.0
"""How long a session that listens to what it notifies of waits to tell its client with the commit's answer,
as PostgreSQL does. After that it tells it later."""


class Change(NamedTuple):
    """A LISTEN or UNLISTEN in a block."""

    channel: str | None
    """None: all of them."""
    is_listen: bool
    savepoints: tuple[Savepoint, ...]
    """Those there were: going back to one of them takes it back."""


class SessionChannels:
    def __init__(self, notifications: Notifications, env: Env, *, database: int, pid: int) -> None:
        self._notifications = notifications
        self._env = env
        self._database = database
        self._pid = pid
        self._since: Mapping[str, Timestamp] = {}
        """The channels that it listens to: those of transactions that committed later arrive."""
        self._changes: list[Change] = []
        self._tried: dict[str, Timestamp] = {}
        """The channels that a transaction that is about to commit adds."""
        self._block: Block | None = None
        """The transaction that notifies, with its number and the channels."""
        self._transaction = 0
        self._notified: set[str] = set()
        self._lock = env.lock()
        self._arrived: list[Arrival] = []
        self._arrived_bytes = 0
        self._is_lost = False
        self._own_arrived = env.event()
        self.on_arrival: Callable[[], None] = lambda: None
        """Called from another thread when something has arrived for a client that was told all before."""

    @property
    def listened(self) -> tuple[str, ...]:
        return tuple(self._since)

    # ── NOTIFY ─────────────────────────────────────────────────────────────────────────────────

    def notify(self, block: Block, channel: str, payload: str) -> None:
        if not channel:
            raise InvalidParameter("channel name cannot be empty")
        if len(channel.encode()) > CHANNEL_BYTES_MAX:
            raise InvalidParameter("channel name too long")
        if len(payload.encode()) >= PAYLOAD_BYTES_END:
            raise InvalidParameter("payload string too long")
        if block.past is not None:
            raise ReadOnlyTransaction("cannot execute NOTIFY in a transaction that reads the past")
        if self._block is not block:
            self._block, self._transaction = block, self._notifications.next_number()
            self._notified = set()
            self._own_arrived.clear()
        self._notified.add(channel)
        self._notifications.put(
            block.use.txn,
            self._transaction,
            database=self._database,
            pid=self._pid,
            channel=channel,
            payload=payload,
        )

    # ── LISTEN and UNLISTEN ────────────────────────────────────────────────────────────────────

    def listen(self, channel: str, block: Block | None) -> None:
        """`block`: the one that it is part of; None: it counts at once."""
        self._change(channel, block, is_listen=True)

    def unlisten(self, channel: str | None, block: Block | None) -> None:
        self._change(channel, block, is_listen=False)

    def _change(self, channel: str | None, block: Block | None, *, is_listen: bool) -> None:
        savepoints = () if block is None else tuple(block.savepoints)
        self._changes.append(Change(channel, is_listen, savepoints))
        if block is None:
            self.before_commit()
            self.end_transaction(is_committed=True)

    def back_to(self, savepoint: Savepoint) -> None:
        """ROLLBACK TO: takes back what came after."""
        self._changes = [
            each for each in self._changes if not any(other is savepoint for other in each.savepoints)
        ]

    @property
    def needs_thread(self) -> bool:
        """Whether the end of the transaction reads the store, or waits."""
        return bool(self._changes) or not self._notified.isdisjoint(self._since)

    def before_commit(self) -> None:
        """Makes itself known for new channels: the transaction's own notifications arrive, too."""
        if not self._changes:
            return
        added = [each for each in self._after() if each not in self._since]
        if len(self._since) + len(added) > CHANNELS_MAX:
            self._changes.clear()
            raise LimitExceeded(f"a session listens to at most {CHANNELS_MAX} channels")
        for channel in added:
            self._notifications.add(self, self._database, channel)
            self._tried[channel] = 0
        if added:
            self._tried = dict.fromkeys(added, self._notifications.clock_at())

    def _after(self) -> dict[str, Timestamp]:
        """What it listens to if the transaction commits; the times are not known yet."""
        after = dict(self._since)
        for each in self._changes:
            if each.is_listen and each.channel is not None:
                after.setdefault(each.channel, 0)
            elif each.channel is None:
                after.clear()
            else:
                after.pop(each.channel, None)
        return after

    def end_transaction(self, *, is_committed: bool) -> None:
        if self._changes or self._tried:
            before, kept = {**self._since, **self._tried}, self._after() if is_committed else self._since
            self._since = {channel: before[channel] for channel in kept}
            for channel in before.keys() - kept.keys():
                self._notifications.remove(self, self._database, channel)
            self._changes, self._tried = [], {}
        if self._block is not None:
            self._block = None
            if is_committed and not self._notified.isdisjoint(self._since):
                with self._env.waiting():
                    self._own_arrived.wait(OWN_SECONDS)
            self._notified = set()

    def discard(self) -> None:
        """UNLISTEN *, as DISCARD ALL and the end of the session have it."""
        self.unlisten(None, None)

    # ── arrivals ───────────────────────────────────────────────────────────────────────────────

    def arrive(self, arrival: Arrival) -> None:
        with self._lock:
            was_empty = not self._arrived
            self._arrived.append(arrival)
            self._arrived_bytes += ARRIVAL_BYTES + len(arrival.payload)
            if self._arrived_bytes > ARRIVED_BYTES_MAX:
                self._is_lost = True
                self._arrived = self._arrived[:1]
        if arrival.transaction == self._transaction and arrival.pid == self._pid:
            self._own_arrived.set()
        if was_empty:
            self.on_arrival()

    def lose(self) -> None:
        with self._lock:
            self._is_lost = True
        self.on_arrival()

    @property
    def has_arrivals(self) -> bool:
        return bool(self._arrived) or self._is_lost

    def check(self) -> None:
        """Raises Terminated if some are lost."""
        if self._is_lost:
            raise Terminated(
                "terminating connection because notifications for it were lost",
                hint="Connect again, LISTEN, and look for what has changed.",
            )

    def take(self) -> list[Arrival]:
        """What the client is to be told now."""
        with self._lock:
            arrived, self._arrived = self._arrived, []
            self._arrived_bytes = 0
        if self._is_lost:
            return []
        since = self._since
        return [each for each in arrived if each.channel in since and each.at > since[each.channel]]
