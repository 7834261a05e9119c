"""Memory is charged before it is taken: one tree of accounts for a node.

    node                 sql.node_memory: what is charged, and what the process really has
      user               sql.user_memory
        session          sql.session_memory
          statement      sql.query_memory; a cursor and a portal have one of their own
            holding      of one sort, hash table, kept rows or buffer: no limit of its own

A charge goes up the whole branch or nowhere: whoever has no room for it refuses it (53200) before anything is
taken. Charges come in pieces (a batch of rows, 64 KiB of values), so that an account costs a lock and a few
additions per piece. A statement's first 64 KiB are never refused: an operator can always look and act.

Estimates are not the truth, so the node also looks at what the process has, each time that some MiB were
charged. A single value above 1 MiB is charged by what makes it, before it is made (`charge_value`): a batch
of such values would be too much before anybody counts the batch.

Invariant (memory-sum): an account holds what its open children hold, and what is held through it directly.
Invariant (memory-given-back): when an account is closed, all that was charged through it is given back, also
what somebody has forgotten.

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
"""Smaller values are charged by whoever holds them; larger ones by what makes them."""

PIECE_BYTES = 64 * 1024
"""So much is added up before an account is told; and so much every statement may have."""

LOOK_BYTES = 8 << 20
"""After so many bytes were charged the node looks again at what the process has. A look takes 10 us."""

TRIM_BYTES = 32 << 20
"""When so much was given back, the system is given the free pages, too."""

UNCHARGED_PART = 32
"""One part in so many of the node's limit is left for copies that live for a moment and are charged to
nobody: a row as values, as bytes, and as it is written."""

NODE_SHARE = 2
"""One part in so many of the machine's memory is for a node, where nothing is set."""

Limit: TypeAlias = Callable[[], int]


class ResidentMemory:
    """How much the process has: looked at now and then, added up in between. Guarded by the tree's lock."""

    def __init__(
        self, resident: Callable[[], int] = resident_bytes, trims: Sequence[Callable[[], None]] = (trim,)
    ) -> None:
        self._resident = resident
        self._trims = trims
        self._known_bytes = 0
        self._since_bytes = LOOK_BYTES
        """Charged since the last look; at first one is due."""
        self.freed_bytes = 0
        """Given back by accounts since the last trim."""
        self.coming_bytes = 0
        """Of large values that are being made right now: charged, but not yet to be seen."""

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
    """Of the node, a user, a session or a statement."""

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
        """As errors call it: 'user "ann"'."""
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
        """Raises OutOfMemory, and charges nothing, if one of the branch has no room for so many bytes."""
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
            return  # whoever wants little goes on while others have taken much
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
        """Charges what is there already, and cannot be refused."""
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
        """Gives back all that is still charged; again is harmless. What is charged later counts nowhere."""
        self.settle()
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
            count, self.held_bytes = self.held_bytes, 0
            above = self.parent
            while above is not None and not above.is_closed:
                above.held_bytes -= count
                above = above.parent
            if self.process is not None:
                self.process.freed_bytes += count

    @property
    def large(self) -> "LargeValues":
        """Where the large values of this statement are counted."""
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
        """What is held through it is given back when its holder is done."""
        holding = Holding(self, what)
        try:
            yield holding
        finally:
            holding.give_back()


def lone_account(limit_bytes: int) -> Account:
    """Of a statement that belongs to no session: it has a limit and no parent."""
    return Account("the statement", limit=lambda: limit_bytes, setting="sql.query_memory")


class Holding:
    """What one part of a statement holds, added up in pieces."""

    __slots__ = ("_account", "_pending_bytes", "_what", "held_bytes")

    def __init__(self, account: Account, what: str = "its rows") -> None:
        self._account = account
        self._what = what
        self.held_bytes = 0
        self._pending_bytes = 0

    def hold(self, rows: Sequence[Sequence[Any]]) -> None:
        """Raises OutOfMemory if these are too many."""
        self.hold_bytes(size_of_rows(rows))

    def hold_bytes(self, count: int) -> None:
        self._account.charge(count, self._what)
        self.held_bytes += count

    def add(self, row: Sequence[Any]) -> None:
        """One more: for whoever gets them one by one."""
        self.add_bytes(size_of_rows((row,)))

    def add_bytes(self, count: int) -> None:
        self._pending_bytes += count
        if self._pending_bytes > PIECE_BYTES:
            count, self._pending_bytes = self._pending_bytes, 0
            self.hold_bytes(count)

    def replace(self, count: int) -> None:
        """It holds so many bytes now, in the place of what it held."""
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

    Most are gone at once (`length(repeat(...))`), and nobody says so. Whoever takes rows in batches calls
    `settle` when it has charged those it keeps. Where a charge is refused before that, what the process
    has tells how many of the values can still be there.
    """

    def __init__(self, account: Account, lock: AbstractContextManager[object]) -> None:
        self._process = account.process
        self._lock = lock
        self._made = Holding(account, "large values")
        self._last_bytes = 0
        self._mark_bytes = 0

    @property
    def made_bytes(self) -> int:
        return self._made.held_bytes

    def charge(self, count: int) -> None:
        if self._made.held_bytes == 0:
            self._mark_bytes = resident_bytes()
        self._coming(0)  # the one before is there by now, or gone
        try:
            self._made.hold_bytes(count)
        except OutOfMemory:
            there = max(0, resident_bytes() - self._mark_bytes)
            if there >= self._made.held_bytes:
                raise
            self._made.replace(there)
            self._made.hold_bytes(count)
        self._coming(count)

    def settle(self) -> None:
        if self._made.held_bytes:
            self._coming(0)
            self._made.give_back()

    def _coming(self, count: int) -> None:
        process = self._process
        if process is not None:
            with self._lock:
                process.coming_bytes += count - self._last_bytes
        self._last_bytes = count


_making: ContextVar[LargeValues | None] = ContextVar("making", default=None)
"""For whom the calling thread evaluates expressions: functions on texts know nothing of statements."""


@contextmanager
def making(values: LargeValues) -> Iterator[None]:
    """Large values that the calling thread makes meanwhile are charged there."""
    token = _making.set(values)
    try:
        yield
    finally:
        _making.reset(token)


def charge_value(count: int) -> None:
    """Before a value of so many bytes is made. Raises OutOfMemory."""
    values = _making.get()
    if values is not None:
        values.charge(count)
    elif resident_bytes() + count > machine_bytes() // NODE_SHARE:
        raise OutOfMemory(
            f"the node has no room for a value of {count} bytes",
            hint="Ask for smaller values, or for fewer at a time.",
        )
