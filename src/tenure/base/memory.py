"""Memory is charged before it is taken: one tree of accounts for a node.

    node                 sql.node_memory: the sum of the charges, and the resident memory of the process
      user               sql.user_memory
        session          sql.session_memory
          statement      sql.query_memory; a cursor and a portal have one of their own
            holding      of one sort, hash table, kept rows or buffer: no limit of its own

A charge goes up the whole branch or nowhere: an account without room for it refuses it (53200) before the
memory is allocated. Charges come in pieces (a batch of rows, 64 KiB of values), so that an account costs a
lock and a few additions per piece. A statement's first 64 KiB are never refused: an operator can always look
and act.

Charges are estimates, so the node also measures the process each time that some MiB were charged. The
function that makes a single value above 1 MiB charges it beforehand (`charge_value`): a batch of such values
would be too much before the batch is counted.

Invariant (memory-sum): an account's charge is the sum of its open children's charges and its direct ones.
Invariant (memory-given-back): when an account is closed, everything charged through it is given back, also
charges that nobody released.

Walk: `base.node_memory` makes the tree; executors charge `Holding`s; `expr.types.value_lengths` calls
`charge_value`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeAlias

from tenure.base.errors import OutOfMemory
from tenure.base.machine_memory import machine_bytes, resident_bytes, trim
from tenure.base.sizes import size_of_rows

LARGE_BYTES = 1 << 20
"""Smaller values are charged by the code that keeps them, larger ones by the function that makes them."""

PIECE_BYTES = 64 * 1024
"""Charges are added up to this size before an account is told; every statement may have as much."""

LOOK_BYTES = 8 << 20
"""After so many bytes were charged the node measures the process again, which takes 10 us."""

TRIM_BYTES = 32 << 20
"""When so much was given back, the free pages are returned to the system."""

UNCHARGED_PART = 32
"""This fraction of the node's limit is reserved for short-lived copies that are not charged: a row as values,
as bytes, and as it is written.
"""

NODE_SHARE = 2
"""A node's fraction of the machine's memory, where no limit is set."""

Limit: TypeAlias = Callable[[], int]


class ResidentMemory:
    """The size of the process: measured now and then, added up in between. Guarded by the tree's lock."""

    def __init__(
        self, resident: Callable[[], int] = resident_bytes, trims: Sequence[Callable[[], None]] = (trim,)
    ) -> None:
        self._resident = resident
        self._trims = trims
        self._known_bytes = 0
        self._since_bytes = LOOK_BYTES
        """Bytes charged since the last measurement; the first charge measures."""
        self.freed_bytes = 0
        """Bytes given back by accounts since the last trim."""
        self.coming_bytes = 0
        """Bytes of large values that are being made: charged, but not yet part of the resident memory."""

    def has_room(self, count: int, limit_bytes: int) -> bool:
        limit_bytes -= limit_bytes // UNCHARGED_PART
        since = self._since_bytes + count
        if since > LOOK_BYTES or self._known_bytes + since > limit_bytes:
            if not self._fits(count, limit_bytes):
                return False
            since = count
        self._since_bytes = since
        return True

    def _fits(self, count: int, limit_bytes: int) -> bool:
        wanted = count + self.coming_bytes
        self._known_bytes = self._resident()
        if self._known_bytes + wanted > limit_bytes and self.freed_bytes > TRIM_BYTES:
            self.trim()
            self._known_bytes = self._resident()
        return self._known_bytes + wanted <= limit_bytes

    def trim(self) -> None:
        self.freed_bytes = 0
        for each in self._trims:
            each()

    def now_bytes(self) -> int:
        return self._resident()


class Account:
    """The account of the node, a user, a session or a statement."""

    __slots__ = (
        *("_large", "_limit", "_lock", "held_bytes", "is_closed", "name", "parent", "peak_bytes"),
        *("process", "setting"),
    )

    def __init__(
        self,
        name: str,
        parent: "Account | None" = None,
        *,
        limit: Limit,
        setting: str = "",
        lock: AbstractContextManager[object] | None = None,
        process: ResidentMemory | None = None,
    ) -> None:
        self.name = name
        """The owner as errors name it: 'user "ann"'."""
        self.parent = parent
        self._limit = limit
        self.setting = setting
        self._lock: AbstractContextManager[object] = (
            parent._lock if parent is not None else lock or nullcontext()
        )
        self.process: ResidentMemory | None = process if parent is None else parent.process
        self.held_bytes = 0
        self.peak_bytes = 0
        self.is_closed = False
        self._large: LargeValues | None = None

    @property
    def limit_bytes(self) -> int:
        return self._limit()

    def charge(self, count: int, what: str = "its rows") -> None:
        """Raises OutOfMemory, and charges nothing, if one account of the branch lacks the room."""
        with self._lock:
            if self.held_bytes + count > PIECE_BYTES:
                self._check(count, what)
            self._add(count)

    def _add(self, count: int) -> None:
        account: Account | None = self
        while account is not None and not account.is_closed:
            account.held_bytes += count
            if account.held_bytes > account.peak_bytes:
                account.peak_bytes = account.held_bytes
            account = account.parent

    def _check(self, count: int, what: str) -> None:
        account: Account | None = self
        root = self
        while account is not None:
            if account.held_bytes + count > account._limit():
                raise account._refusal(count, what)
            root, account = account, account.parent
        if self.process is None or self.held_bytes + count <= LARGE_BYTES:
            return  # a statement that needs little goes on while others use much
        if not self.process.has_room(count, root._limit()):
            raise OutOfMemory(
                f"the node's process has no room in memory for {count} bytes more for {what}: "
                f"its limit is {root._limit()} bytes",
                hint=f"Ask for less at a time, end other statements, or raise {root.setting}.",
            )

    def _refusal(self, count: int, what: str) -> OutOfMemory:
        return OutOfMemory(
            f"{self.name} holds {self.held_bytes} bytes in memory, and {count} more for {what} "
            f"would be above the limit of {self._limit()} bytes",
            hint=f"Ask for less at a time, close cursors, or raise {self.setting}; SHOW MEMORY tells more.",
        )

    def take(self, count: int) -> None:
        """Charges memory that is allocated already and cannot be refused."""
        with self._lock:
            self._add(count)

    def release(self, count: int) -> None:
        with self._lock:
            account: Account | None = self
            while account is not None and not account.is_closed:
                account.held_bytes -= count
                account = account.parent
            if self.process is not None:
                self.process.freed_bytes += count

    def close(self) -> None:
        """Gives back all that is still charged; closing again does nothing. Later charges count nowhere."""
        self.settle()
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
            self._large = None  # they refer to each other
            count, self.held_bytes = self.held_bytes, 0
            above = self.parent
            while above is not None and not above.is_closed:
                above.held_bytes -= count
                above = above.parent
            if self.process is not None:
                self.process.freed_bytes += count

    @property
    def large(self) -> "LargeValues":
        """Counts the large values of this statement."""
        if self._large is None:
            self._large = LargeValues(self, self._lock)
        return self._large

    @property
    def large_bytes(self) -> int:
        return 0 if self._large is None else self._large.made_bytes

    def settle(self) -> None:
        if self._large is not None:
            self._large.settle()

    @contextmanager
    def holding(self, what: str = "its rows") -> Iterator["Holding"]:
        """A holding that is given back when the context ends."""
        holding = Holding(self, what)
        try:
            yield holding
        finally:
            holding.give_back()


def lone_account(limit_bytes: int) -> Account:
    """The account of a statement that belongs to no session: it has a limit and no parent."""
    return Account("the statement", limit=lambda: limit_bytes, setting="sql.query_memory")


class Holding:
    """The memory of one operator of a statement, charged in pieces."""

    __slots__ = ("_account", "_pending_bytes", "_what", "held_bytes")

    def __init__(self, account: Account, what: str = "its rows") -> None:
        self._account = account
        self._what = what
        self.held_bytes = 0
        self._pending_bytes = 0

    def hold(self, rows: Sequence[Sequence[Any]]) -> None:
        """Raises OutOfMemory if the account has no room for these rows."""
        self.hold_bytes(size_of_rows(rows))

    def hold_bytes(self, count: int) -> None:
        self._account.charge(count, self._what)
        self.held_bytes += count

    def add(self, row: Sequence[Any]) -> None:
        """Adds one row, for callers that receive rows one by one."""
        self.add_bytes(size_of_rows((row,)))

    def add_bytes(self, count: int) -> None:
        self._pending_bytes += count
        if self._pending_bytes > PIECE_BYTES:
            count, self._pending_bytes = self._pending_bytes, 0
            self.hold_bytes(count)

    def replace(self, count: int) -> None:
        """Sets the charge to so many bytes, in place of the earlier charge."""
        if count > self.held_bytes:
            self.hold_bytes(count - self.held_bytes)
        else:
            self._account.release(self.held_bytes - count)
            self.held_bytes = count

    def give_back(self) -> None:
        count, self.held_bytes, self._pending_bytes = self.held_bytes, 0, 0
        if count:
            self._account.release(count)


# ── large values ───────────────────────────────────────────────────────────────────────────────


class LargeValues:
    """The large values that one statement has made since it last counted its rows.

    Most are freed at once (`length(repeat(...))`) without notice. An executor that takes rows in batches
    calls `settle` when it has charged the rows that it keeps. If a charge is refused before that, the
    resident memory shows how many of the values can still exist.
    """

    def __init__(self, account: Account, lock: AbstractContextManager[object]) -> None:
        self._process = account.process
        self._lock = lock
        self._large_values = Holding(account, "large values")
        self._last_bytes = 0
        self._mark_bytes = 0

    @property
    def made_bytes(self) -> int:
        return self._large_values.held_bytes

    def charge(self, count: int) -> None:
        if self._large_values.held_bytes == 0:
            self._mark_bytes = resident_bytes()
        self._coming(0)  # the value before is made by now, or freed
        try:
            self._large_values.hold_bytes(count)
        except OutOfMemory:
            there = max(0, resident_bytes() - self._mark_bytes)
            if there >= self._large_values.held_bytes:
                raise
            self._large_values.replace(there)
            self._large_values.hold_bytes(count)
        self._coming(count)

    def settle(self) -> None:
        if self._large_values.held_bytes:
            self._coming(0)
            self._large_values.give_back()

    def _coming(self, count: int) -> None:
        process = self._process
        if process is not None:
            with self._lock:
                process.coming_bytes += count - self._last_bytes
        self._last_bytes = count


_making: ContextVar[LargeValues | None] = ContextVar("making", default=None)
"""The statement for which the calling thread evaluates expressions: text functions do not know it."""


@contextmanager
def making(values: LargeValues) -> Iterator[None]:
    """Large values that the calling thread makes meanwhile are charged to `values`."""
    token = _making.set(values)
    try:
        yield
    finally:
        _making.reset(token)


def charge_value(count: int) -> None:
    """Called before a value of so many bytes is made. Raises OutOfMemory."""
    values = _making.get()
    if values is not None:
        values.charge(count)
    elif resident_bytes() + count > machine_bytes() // NODE_SHARE:
        raise OutOfMemory(
            f"the node has no room for a value of {count} bytes",
            hint="Ask for smaller values, or for fewer at a time.",
        )
