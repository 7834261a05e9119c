"""A transaction's use of the catalog: bound to one lease, pinning the descriptors that it uses.

    bind ──► read_at ──► descriptor(id), descriptor(id) ... ──► commit, with F as deadline ──► over
                              each is pinned before it is handed out

All its descriptors are the catalog as of its lease's L, also if the node renews its lease meanwhile. Each use
pins (lease, descriptor); as long as the pin is there, the node's lease row covers the descriptor,
and nobody publishes the version after the next. Lookups are in memory and never wait for the
store.

A transaction that has changed descriptors uses its own copy of them, which no other sees. The temporary
objects of its SQL session are beside the catalog: they need no lease and no pin.

A READ COMMITTED transaction follows the newest lease from statement to statement (`follow_newest`): what it
uses for the first time is of that one, what it has used before stays as it is. Each pin is under its own
lease.

A transaction that waits for a lock uses nothing meanwhile, and the owner of the lock may be about to change
what it has pinned. So it releases its pins (`pause`), and goes on only if it can pin the very same versions
again (`resume`).

Invariant (I10): a commit uses version v only within [M(v), M(v+2)).
Invariant (I16): a pin is released for good only when the outcome of its transaction is known.

Walk: `catalog.leases.node_leases` makes them; SQL calls `descriptor`, `id_at` and `schema_entry`, then
`commit` (or `submit`, and `finish_commit` once it is done) or `close`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from tenure.base.errors import DeadlinePassed, RetryError, SessionLost
from tenure.base.interruptible import Check, unchecked
from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.equal_versions import logical_of
from tenure.catalog.descriptors.temporary_objects import TemporaryObjects
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.scope import TransactionState
from tenure.kv.transaction import Transaction


class UseState(Enum):
    OPEN = "open"
    COMMITTING = "committing"
    OVER = "over"


class Scheme(Protocol):
    """The part of a lease scheme that a use calls."""

    def pin(self, use: "CatalogUse", id: int) -> AnyDescriptor | None:
        """Returns a descriptor, with a pin that keeps it usable until the use is over."""
        ...

    def pin_known(self, use: "CatalogUse", ids: Iterable[int]) -> bool:
        """Pins descriptors that the bound lease is known to have; False if each must be pinned by itself."""
        ...

    def unpin(self, use: "CatalogUse", ids: Iterable[int]) -> None: ...

    def id_at(self, use: "CatalogUse", place: NameKey) -> int | None: ...

    def schema_entry(self, use: "CatalogUse", database: int, name: str) -> SchemaEntry | None: ...

    def follow_newest(self, use: "CatalogUse") -> None:
        """Binds a use to the newest lease; its pins stay where they are."""
        ...

    def frontier_at(self, use: "CatalogUse") -> Timestamp:
        """The time below which all descriptors of the use must be used."""
        ...

    def start_commit(self, use: "CatalogUse") -> None: ...

    def finish(self, use: "CatalogUse") -> None: ...


L = TypeVar("L")


class Pin(Generic[L]):
    """All uses of one descriptor under one lease; the lease's `at` is the time of the descriptor."""

    __slots__ = ("lease", "uses")

    def __init__(self, lease: L) -> None:
        self.lease = lease
        self.uses: dict[CatalogUse, None] = {}


class Lease:
    """A lease of this node, from its acknowledgement to the deletion of its row."""

    def __init__(self, version: CatalogView, session: NodeSession) -> None:
        self.at = version.at
        self.version = version
        self.session = session
        self.is_closed = False
        """Whether it takes no new pins: a newer lease exists."""
        self.pins: dict[int, Pin[Lease]] = {}
        self.written: frozenset[int] | None = None
        """The descriptors that its row covers, as last acknowledged; None is everything."""
        self.deleted_by: Transaction | None = None
        """The last transaction that was to delete its row."""

    @property
    def is_deleted(self) -> bool:
        return self.deleted_by is not None and self.deleted_by.state is TransactionState.COMMITTED

    @property
    def frontier_at(self) -> Timestamp:
        """The time up to which it may be used: its own session's expiration, as last acknowledged."""
        return self.session.expires_at


class CatalogUse:
    __slots__ = (
        "_found",
        "_paused",
        "_scheme",
        "draft",
        "ended",
        "is_mixed",
        "lease",
        "lock_owner",
        "number",
        "on_commit",
        "pins",
        "reads_only",
        "role",
        "started_at",
        "state",
        "statement",
        "temporary",
        "txn",
    )

    def __init__(
        self, scheme: Scheme, lease: Lease | None, txn: Transaction, *, number: int, started_at: Timestamp
    ) -> None:
        self._scheme = scheme
        self._found: dict[int, AnyDescriptor] = {}
        self._paused: list[int] = []
        """Its pins from before it began to wait."""
        self.lease = lease
        """The lease that it is bound to, where one lease covers the whole catalog."""
        self.is_mixed = False
        """Whether it uses descriptors of an earlier lease too."""
        self.txn = txn
        txn.on_read(self.check_frontier)
        self.number = number
        self.lock_owner = 0
        """The number of the owner of its locks, for those who look for cycles of waits; 0: none known."""
        self.started_at = started_at
        self.statement = ""
        """The current statement, for those who wait for it."""
        self.state = UseState.OPEN
        self.ended = ""
        """The reason why it must not go on, if any."""
        self.on_commit: Callable[[Transaction], None] | None = None
        """Called before the commit; may lower its deadline or raise."""
        self.pins: dict[int, Pin[Any]] = {}
        self.draft = Draft()
        self.temporary: TemporaryObjects | None = None
        """The temporary objects of its SQL session; its own changes of them are in its draft."""
        self.reads_only = False
        """Whether it is sure to write nothing."""
        self.role = ""
        """Who has logged in to use it; empty: the node itself."""

    # ── looking up ─────────────────────────────────────────────────────────────────────────────

    def descriptor(self, id: int) -> AnyDescriptor | None:
        found = self._found.get(id)
        if found is not None and not self.draft:
            return found
        if id in self.draft.descriptors:
            return self.draft.descriptors[id]
        if found is None and self.temporary is not None:
            found = self.temporary.by_id.get(id)
            if found is not None:
                return found
        if found is None:
            found = self._scheme.pin(self, id)
            if found is not None:
                self._found[id] = found
        return found

    def used(self) -> list[AnyDescriptor]:
        """The descriptors that it has used so far; may be called from any thread."""
        return list(self._found.copy().values())

    def take_known(self, descriptors: Mapping[int, AnyDescriptor]) -> bool:
        """Uses descriptors of the bound lease, all at once, before any other.

        False if that is impossible: then each must be looked up.
        """
        if self._found or self.draft or not self._scheme.pin_known(self, descriptors):
            return False
        self._found.update(descriptors)
        return True

    def id_at(self, place: NameKey) -> int | None:
        names = self.draft.names
        if names and place in names:
            return names[place]
        if self.temporary is not None and place.schema == self.temporary.schema.id:
            return self.temporary.names.get(place)
        return self._scheme.id_at(self, place)

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        entries = self.draft.entries
        if entries and (database, name) in entries:
            return entries[database, name]
        return self._scheme.schema_entry(self, database, name)

    def follow_newest(self) -> bool:
        """What it uses for the first time from now on is of the newest lease. A transaction that changes the
        schema stays with its lease.

        Returns whether that is another one: then the next read must take a new time.
        """
        former = self.lease
        if not self.draft:
            self._scheme.follow_newest(self)
        has_moved = self.lease is not former
        self.is_mixed = self.is_mixed or (has_moved and bool(self._found))
        return has_moved

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        """Raises if the transaction must not go on."""
        if self.ended:
            raise RetryError(f"the transaction was ended: {self.ended}")
        assert self.state is not UseState.OVER, "the transaction is over"

    @property
    def frontier_at(self) -> Timestamp:
        """The time below which all descriptors of the use must be used."""
        return self._scheme.frontier_at(self)

    def check_frontier(self) -> None:
        """Raises if `read_at` lies beyond the frontier of the lease."""
        check_below(self._scheme.frontier_at(self), self.txn.read_at)

    def refresh(self) -> None:
        """Moves `read_at` up if all reads still hold."""
        self.check()
        self.txn.refresh()

    def commit(self, check: Check = unchecked) -> Timestamp:
        """Commits below the frontier, or not at all."""
        with self._ending():
            self._start_commit()
            return self.txn.commit(check)

    def submit(self, on_done: Callable[[], None]) -> None:
        """Begins to commit and returns; once `on_done` was called, `finish_commit` ends it.

        `on_done` may be called before this returns, or from another thread, and must be quick. If this
        raises, nothing was sent, the use is over and `on_done` is not called.
        """
        try:
            self._start_commit()
            self.txn.submit(on_done)
        except BaseException:
            with self._ending():
                raise

    def finish_commit(self) -> Timestamp:
        """Returns or raises as `commit` would have; must be called after each `submit`."""
        try:
            return self.txn.finish()
        except SessionLost as error:
            raise _lost() from error
        finally:
            self.close()

    def _start_commit(self) -> None:
        self._scheme.start_commit(self)
        frontier_at = self.frontier_at
        if self.txn.has_read:
            check_below(frontier_at, self.txn.read_at)
        if self.on_commit is not None:
            self.on_commit(self.txn)
        deadline_at = self.txn.deadline_at
        self.txn.deadline_at = frontier_at if deadline_at is None else min(deadline_at, frontier_at)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except SessionLost as error:
            raise _lost() from error
        finally:
            self.close()

    def close(self) -> None:
        """Ends the transaction and releases all its pins; a second call does nothing.

        A submitted commit is over only with `finish_commit`: until the outcome is known, its pins stay.
        """
        if self.state is UseState.OVER:
            return
        self.txn.rollback()
        if self.txn.state is not TransactionState.SUBMITTED:
            self._scheme.finish(self)

    def give_up(self, ids: Iterable[int]) -> None:
        """Releases pins before waiting for what they would block; their use is over."""
        self._scheme.unpin(self, ids)
        for id in ids:
            self._found.pop(id, None)

    def pause(self) -> None:
        """Releases all pins while the transaction waits for a lock; `resume` before it goes on."""
        self._paused += self.pins
        self._scheme.unpin(self, list(self.pins))

    def resume(self) -> None:
        """Pins the released descriptors again; RetryError if one has changed, and then it must not go on."""
        paused, self._paused = self._paused, []
        try:
            for id in paused:
                again = self._scheme.pin(self, id)
                if again is None or logical_of(again) != logical_of(self._found[id]):
                    raise RetryError(f'"{self._found[id].name}" was changed while the transaction waited')
        except RetryError as error:
            self.ended = self.ended or str(error)
            raise


def check_below(frontier_at: Timestamp, at: Timestamp) -> None:
    if not at < frontier_at:
        raise DeadlinePassed(
            f"this node's lease could be used up to {to_text(frontier_at)}",
            hint="It lost touch with the store for longer than liveness.ttl; try again.",
        )


def _lost() -> RetryError:
    """Nothing of it landed: the node that deleted the session closed its lanes first."""
    return RetryError("this node's session was lost, and its schema lease with it")
