"""One transaction of a SQL session: its source of reads, its savepoints and its end.

    implicit   begun by a statement, ended with it (or, of several sent together, at Sync)
    explicit   BEGIN ... COMMIT or ROLLBACK

It binds to the node's lease when the first statement needs the catalog, and takes `read_at` after
that. One that reads the past (AS OF SYSTEM TIME) has a snapshot instead and needs no lease.

    savepoint = what is buffered, declared and set so far; going back to one undoes the rest

Reads count until the block ends, also those after a savepoint that it went back to: the client may have
decided by the rows that it saw.

In a READ COMMITTED block each statement reads at a time of its own (`begin_statement`), under the newest
lease. Only what was read for writing counts, and no more once the block goes back to an earlier savepoint.

Walk: `sql.clients.session` opens and ends blocks; statements read through `source` and write through `txn`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from tenure.base.errors import (
    ActiveTransaction,
    OutcomeUnknown,
    ReadOnlyTransaction,
    RetryError,
    TenureError,
    UndefinedSavepoint,
)
from tenure.base.retries import Pauses, Retries
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Table
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.leases.catalog_use import CatalogUse, check_below
from tenure.catalog.leases.historical import HistoricalUse
from tenure.kv.buffer import BufferMark as Mark
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.reads import NOTHING_READ, Reads
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.kv.view import ReadView
from tenure.schema_change.declared_changes import Requester
from tenure.sql.session.new_sequences import NewSequences
from tenure.sql.session.services import Services
from tenure.sql.session.temporary_tables import TemporaryTables
from tenure.sql.session.variables import NOTHING_SET, VariableState
from tenure.table.deferred_references import DeferredReferences
from tenure.table.rows import Layout


class BlockMark(NamedTuple):
    """How far a block had come: what it had written, declared and read."""

    mark: Mark | None
    """None: it had not begun, so all that it has written came later."""
    draft: Draft
    reads: Reads


class Savepoint(NamedTuple):
    name: str
    place: BlockMark
    variables: VariableState
    locks: tuple[int, int]
    """How many rows and numbers were locked: see `sql.session.session_locks`."""
    portals: Mapping[str, object]
    """The cursors and portals there were: all others are closed when the block goes back."""


LEASE_ATTEMPTS, LEASE_PAUSES = 100, Pauses(0.1, 0.1, spread=0.0)
"""How often it asks for a lease, if its node has none: after the store was away, that takes some seconds."""


class Block:
    __slots__ = (
        "_new_sequences",
        "_services",
        "_statement",
        "_temporary",
        "_use",
        "as_of",
        "began",
        "charge",
        "deferred",
        "fence",
        "has_locks",
        "is_committing",
        "is_explicit",
        "is_failed",
        "is_read_committed",
        "is_read_only",
        "is_single",
        "now_micros",
        "on_end",
        "past",
        "pause",
        "proves_late",
        "role",
        "savepoints",
        "variables",
    )

    def __init__(
        self,
        services: Services,
        *,
        is_explicit: bool = False,
        variables: VariableState = NOTHING_SET,
        temporary: TemporaryTables | None = None,
        role: str = "",
    ) -> None:
        """`temporary`: the session's temporary tables, which its transactions use and change; `role`: who has
        logged in.
        """
        self.role = role
        self._services = services
        self._temporary = temporary
        self._use: CatalogUse | None = None
        self._new_sequences: NewSequences | None = None
        self._statement = ""
        self.past: HistoricalUse | None = None
        self.as_of: Timestamp | None = None
        self.is_explicit = is_explicit
        self.is_failed = False
        self.is_read_only = False
        self.is_single = False
        """Whether it is for one statement alone."""
        self.is_read_committed = False
        """Each statement reads at a time of its own; never so for one statement alone, which has one time."""
        self.is_committing = False
        self.pause: Callable[[float], None] | None = None
        """How it waits for a lease; None: its statement runs again from the start."""
        self.fence: Callable[[Transaction | None], None] | None = None
        """Checks the locks that its SQL session holds through the node's session, and bounds a commit by
        them."""
        self.charge: Callable[[int], None] | None = None
        """Accounts for so many bytes of its writes; raises if there is no room for them."""
        self.proves_late = False
        """The client gets no answer before the commit, so conflicting rows may be found at the commit."""
        self.has_locks = False
        """Rows are locked for it: they are given up when it is over."""
        self.now_micros = services.env.wall_micros()
        self.began = services.env.monotonic()
        self.savepoints: list[Savepoint] = []
        self.deferred = DeferredReferences()
        """Foreign keys that are checked before it commits."""
        self.variables = variables
        """The variables as they were when it began, for a rollback."""
        self.on_end: list[Callable[[], None]] = []
        """Callbacks for its end, by commit or rollback: they release locks."""

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    @property
    def use(self) -> CatalogUse:
        """The use of the leased catalog; made when it is first asked for."""
        if self._use is None:
            assert self.past is None, "a block that reads the past has no lease"
            self._use = self._bound()
        return self._use

    def _bound(self) -> CatalogUse:
        """A node without a lease gets one soon: nothing was read yet, so it can be waited for."""
        services, retries = self._services, None
        while True:
            try:
                return self._fenced(services.leases.bind(services.store.begin(), statement=self._statement))
            except RetryError as error:
                if retries is None:
                    attempts = 1 if self.pause is None else LEASE_ATTEMPTS
                    retries = Retries(attempts, LEASE_PAUSES, services.env, sleep=self.pause)
                retries.failed(error)
            retries.pause()

    def _fenced(self, use: CatalogUse) -> CatalogUse:
        """The node may have another session than when its SQL session got what it holds."""
        use.on_commit = self.fence
        use.reads_only = self.is_read_only
        use.role = self.role
        use.txn.buffer.account_to(self.charge)
        if self.is_read_committed:
            use.txn.proof.keep_times()
        try:
            if self._temporary is not None:
                self._temporary.attach(use)
            if self.fence is not None:
                self.fence(None)
        except BaseException:
            use.close()
            raise
        return use

    def begin_statement(self, text: str) -> None:
        """Notes the statement, which is shown to transactions that wait for the block."""
        self._statement = text
        if self._use is not None:
            self._use.statement = text
            if self.is_read_committed:
                self._use.follow_newest()
                self._use.txn.renew()

    def follow_newest(self) -> None:
        """The next statement of a READ COMMITTED block is planned with the newest lease, as far as it uses
        what the block has not used before.
        """
        if self.is_read_committed and self._use is not None and self._use.follow_newest():
            self._use.txn.renew()

    def start_finding(self) -> None:
        """In a READ COMMITTED block, what the statement reads from now on need not be proved."""
        if self.is_read_committed and self.past is None:
            self.use.txn.start_finding()

    @property
    def has_begun(self) -> bool:
        return self._use is not None or self.past is not None

    @property
    def begun(self) -> CatalogUse | None:
        """The use of the catalog, if it has begun; asking does not begin it."""
        return self._use

    @property
    def catalog(self) -> CatalogUse | HistoricalUse:
        return self.use if self.past is None else self.past

    @property
    def source(self) -> Transaction | Snapshot:
        return self.use.txn if self.past is None else self.past.snapshot

    def view(self) -> ReadView | Snapshot:
        """A fixed view of the current state, for a cursor that is read while the block goes on."""
        return self.use.txn.view() if self.past is None else self.past.snapshot

    @property
    def read_at(self) -> Timestamp:
        return self.use.txn.read_at if self.past is None else self.past.snapshot.at

    def note_query(self) -> None:
        """Its only statement writes nothing: an old version of what it reads is enough to go on."""
        if self.is_single and self.past is None:
            self.use.reads_only = True

    def read_as_of(self, at: Timestamp, protected: Iterable[ProtectedRead] = ()) -> None:
        """Makes all reads be as of a fixed time; allowed only before the first statement.

        Below the threshold it reads in the name of protections of that time.
        """
        if self.past is not None and self.past.snapshot.at == at:
            return
        if self.has_begun:
            raise ActiveTransaction("AS OF SYSTEM TIME must be set before any query of the transaction")
        snapshot = self._services.store.snapshot(at)
        for each in protected:
            snapshot.allow(each)
        self.past = HistoricalUse(self._services.catalog, self._services.leases.newest, snapshot, self.role)
        self._services.open_reads.add(self.past)
        self.on_end.append(partial(self._services.open_reads.remove, self.past))
        self.as_of = at
        self.is_read_only = True

    def start_writing(self) -> None:
        """What is read from now on counts, in any block."""
        if self.is_read_committed and self._use is not None:
            self._use.txn.start_writing()

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self.catalog.descriptor(id)

    def descriptors(self) -> Iterator[AnyDescriptor]:
        """All that its catalog has, without its own draft; this pins nothing."""
        lease = None if self.past is not None else self.use.lease
        if lease is None:
            yield from self._services.catalog.list(self.source)
        else:
            yield from lease.version.descriptors()
            yield from () if self.use.temporary is None else self.use.temporary.by_id.values()

    def enum(self, id: int) -> EnumType:
        found = self.catalog.descriptor(id)
        assert isinstance(found, EnumType), f"type {id} is gone although a column has it"
        return found

    def layout(self, table: Table) -> Layout:
        return self._services.layouts.of(table, self.enum)

    # ── writing ────────────────────────────────────────────────────────────────────────────────

    def txn(self, what: str) -> Transaction:
        """The transaction, to write in; `what` is the statement's name, for the refusal (25006)."""
        self.require_writable(what)
        return self.use.txn

    def require_writable(self, what: str) -> None:
        if self.is_read_only:
            raise ReadOnlyTransaction(f"cannot execute {what} in a read-only transaction")

    @property
    def draft(self) -> Draft:
        return self.use.draft

    @property
    def new_sequences(self) -> NewSequences:
        """Those that it creates and has drawn values of."""
        if self._new_sequences is None:
            self._new_sequences = NewSequences(self._services.store, self._services.temporary_rows)
        return self._new_sequences

    # ── savepoints ─────────────────────────────────────────────────────────────────────────────

    def mark(self) -> BlockMark:
        """Where it is now, to go `back` to; `forget` it if that will not happen."""
        if self._use is None:
            return BlockMark(None, Draft(), NOTHING_READ)
        txn = self._use.txn
        return BlockMark(txn.mark(), self._use.draft.copy(), txn.proof.mark())

    def back(self, place: BlockMark) -> None:
        """Undoes what was written and declared since; the place can be gone back to again.

        What was read since stays read, and the time that it was read at stays the block's. In a READ
        COMMITTED block it was read for writes that are undone: it need not be proved any more.
        """
        if self._use is not None:
            self._use.txn.back_to(place.mark)
            self._use.draft = place.draft.copy()
            if self.is_read_committed:
                self._use.txn.proof.forget(place.reads)

    def undo(self, place: BlockMark) -> None:
        """Undoes a statement that gave no answer yet: its reads do not count either."""
        if self._use is None:
            return
        if place.mark is None:
            self._drop_use(self._use)
            self._use = None
            return
        self.back(place)
        self._use.txn.proof.forget(place.reads)
        self.forget(place)

    def forget(self, place: BlockMark) -> None:
        """Keeps the writes since a savepoint that the block will not go back to."""
        if self._use is not None:
            self._use.txn.release(place.mark)

    def savepoint(self, name: str) -> Savepoint:
        """The newest of this name."""
        return self.savepoints[self._position(name)]

    def release(self, name: str) -> None:
        """Forgets a savepoint and those after it."""
        position = self._position(name)
        self.forget(self.savepoints[position].place)
        del self.savepoints[position:]

    def back_to(self, name: str) -> Savepoint:
        """Undoes what came after a savepoint, which stays."""
        position = self._position(name)
        del self.savepoints[position + 1 :]
        self.back(self.savepoints[position].place)
        self.is_failed = False
        return self.savepoints[position]

    def _position(self, name: str) -> int:
        for position in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[position].name == name:
                return position
        raise UndefinedSavepoint(f'savepoint "{name}" does not exist')

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    @property
    def has_writes(self) -> bool:
        """Whether its commit has to go to the store."""
        return self._use is not None and (bool(self._use.draft) or self._use.txn.has_writes)

    @property
    def can_submit(self) -> bool:
        use = self._use
        if use is None or use.draft or use.txn.proof.has_constraints:
            return False  # constraints may have to be looked at again
        return use.temporary is None or not use.temporary.on_commit

    def commit(self, requester: Requester) -> None:
        """Blocks until it is decided, and where it changes the schema, until all of it is public."""
        try:
            if self._use is None:
                return
            self.start_writing()
            if self._temporary is not None and not self.is_read_only:
                self._temporary.end_transaction(self._use)
            if self._new_sequences is not None:
                self._new_sequences.keep(self._use)
            if not self.has_writes and self._use.txn.proof.has_one_time:
                self._finish_reading(self._use)
                return
            self._come_up_to_date()
            self.is_committing = True
            self._commit(self._use, requester)
        finally:
            self.close()

    def _finish_reading(self, use: CatalogUse) -> None:
        use.check_frontier()
        if use.temporary is not None:
            # Below the frontier the node session is not deleted, so nobody has removed its temporary rows.
            check_below(use.frontier_at, self._services.store.engine.clock_at())
        if self.fence is not None:
            self.fence(None)

    def _commit(self, use: CatalogUse, requester: Requester) -> None:
        temporary = self._temporary
        try:
            self._services.changer.commit(use, requester=requester)
        except OutcomeUnknown:
            if self._new_sequences is not None:
                self._new_sequences.leave()
            if temporary is not None:
                temporary.lose()
            raise
        if temporary is not None:
            temporary.keep(use)

    def submit(self, on_done: Callable[[], None]) -> None:
        """Hands the commit over and returns; `finish` tells, after `on_done`, how it went."""
        self._come_up_to_date()
        self.use.submit(on_done)

    def take_back(self, error: TenureError) -> bool:
        """Gives up a commit that was submitted, unless it was sent; `finish` then raises the error."""
        return self.use.txn.take_back(error)

    def _come_up_to_date(self) -> None:
        """Reads the rows that the block relies on as late as possible: few of them change after that.

        A READ COMMITTED block looks at its constraints again, while it can still wait for locks.
        """
        if self.is_read_committed and self.use.txn.proof.has_constraints:
            self.use.txn.settle()
        elif self.is_explicit and self.use.txn.proof.counts_on_rows:
            self.use.refresh()

    def finish(self) -> None:
        try:
            self.use.finish_commit()
        finally:
            self.close()

    def close(self) -> None:
        """Drops uncommitted changes and releases everything it holds; a second call has no effect."""
        if self._use is not None:
            self._drop_use(self._use)
        if self._new_sequences is not None:
            self._new_sequences.settle()
        ended, self.on_end = self.on_end, []
        for each in ended:
            each()

    def _drop_use(self, use: CatalogUse) -> None:
        use.close()
        if self.charge is not None:
            self.charge(0)
