"""One transaction of a SQL session: what it reads from, and how it ends.

    implicit   begun by a statement, ended with it (or, of several sent together, at Sync)
    explicit   BEGIN ... COMMIT or ROLLBACK

It binds to the node's lease when the first statement needs the catalog, and takes `read_at` after
that. One that reads the past (AS OF SYSTEM TIME) has a snapshot instead and needs no lease.

    savepoint = what is buffered, declared and set so far; going back to one undoes the rest

Walk: `sql.session` opens and ends blocks; statements read through `source` and write through `txn`.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors import AnyDescriptor, EnumType, Table
from tenure.catalog.drafts import Draft
from tenure.catalog.historical import HistoricalUse
from tenure.catalog.uses import Use
from tenure.cluster.lock_table import Owner
from tenure.kv.buffer import Savepoint as Mark
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.schema_change.changer import Asked
from tenure.sql.errors import ActiveTransaction, InvalidSavepoint, ReadOnlyTransaction
from tenure.sql.parts import Parts
from tenure.table.rows import Layout


class Savepoint(NamedTuple):
    name: str
    mark: Mark | None
    draft: Draft | None
    variables: dict[str, str]


class Block:
    __slots__ = (
        "_parts",
        "_statement",
        "_use",
        "as_of",
        "asked",
        "is_explicit",
        "is_failed",
        "is_read_only",
        "lock_owner",
        "now_micros",
        "on_end",
        "past",
        "savepoints",
        "variables",
    )

    def __init__(self, parts: Parts, *, is_explicit: bool, variables: dict[str, str]) -> None:
        self._parts = parts
        self._use: Use | None = None
        self._statement = ""
        self.past: HistoricalUse | None = None
        self.as_of: Timestamp | None = None
        self.is_explicit = is_explicit
        self.is_failed = False
        self.is_read_only = False
        self.lock_owner: Owner | None = None
        self.now_micros = parts.env.wall_micros()
        self.savepoints: list[Savepoint] = []
        self.variables = variables
        """What was set when it began: a rollback goes back to it."""
        self.asked = Asked()
        self.on_end: list[Callable[[], None]] = []
        """What is to be done when it is over, however it ends: locks are released."""

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    @property
    def use(self) -> Use:
        """The use of the leased catalog; made when it is first asked for."""
        if self._use is None:
            assert self.past is None, "a block that reads the past has no lease"
            self._use = self._parts.leases.bind(self._parts.store.begin(), statement=self._statement)
        return self._use

    def begin_statement(self, text: str) -> None:
        """Says what it is doing, for whoever has to wait for it."""
        self._statement = text
        if self._use is not None:
            self._use.statement = text

    @property
    def has_begun(self) -> bool:
        return self._use is not None or self.past is not None

    @property
    def begun(self) -> Use | None:
        """The use of the catalog, if there is one: for whoever only looks in."""
        return self._use

    @property
    def catalog(self) -> Use | HistoricalUse:
        return self.use if self.past is None else self.past

    @property
    def source(self) -> Transaction | Snapshot:
        return self.use.txn if self.past is None else self.past.snapshot

    @property
    def read_at(self) -> Timestamp:
        return self.use.txn.read_at if self.past is None else self.past.snapshot.at

    def read_as_of(self, at: Timestamp) -> None:
        """From here on everything is read as of a fixed time; only before the first statement."""
        if self.past is not None and self.past.snapshot.at == at:
            return
        if self.has_begun:
            raise ActiveTransaction("AS OF SYSTEM TIME must be set before any query of the transaction")
        snapshot = self._parts.store.snapshot(at)
        self.past = HistoricalUse(self._parts.catalog, self._parts.leases.newest, snapshot)
        self.as_of = at
        self.is_read_only = True

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self.catalog.descriptor(id)

    def enum(self, id: int) -> EnumType:
        found = self.catalog.descriptor(id)
        assert isinstance(found, EnumType), f"type {id} is gone although a column has it"
        return found

    def layout(self, table: Table) -> Layout:
        return self._parts.layouts.of(table, self.enum)

    # ── writing ────────────────────────────────────────────────────────────────────────────────

    def txn(self, what: str) -> Transaction:
        """The transaction, to write in; `what` is the statement's name, for the refusal (25006)."""
        if self.is_read_only:
            raise ReadOnlyTransaction(f"cannot execute {what} in a read-only transaction")
        return self.use.txn

    @property
    def draft(self) -> Draft:
        return self.use.draft

    # ── savepoints ─────────────────────────────────────────────────────────────────────────────

    def save(self, name: str, variables: dict[str, str]) -> None:
        mark = draft = None
        if self._use is not None:
            mark, draft = self._use.txn.mark(), self._use.draft.copy()
        self.savepoints.append(Savepoint(name, mark, draft, variables))

    def release(self, name: str) -> None:
        del self.savepoints[self._position(name) :]

    def back_to(self, name: str) -> dict[str, str]:
        """Undoes what came after a savepoint, which stays; returns the variables as they were."""
        position = self._position(name)
        savepoint = self.savepoints[position]
        del self.savepoints[position + 1 :]
        if self._use is not None:
            if savepoint.mark is None:
                # Nothing had been read: what was is undone by starting over.
                self._use.close()
                self._use = None
            else:
                self._use.txn.back_to(savepoint.mark)
                assert savepoint.draft is not None
                self._use.draft = savepoint.draft.copy()
        self.is_failed = False
        return savepoint.variables

    def _position(self, name: str) -> int:
        for position in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[position].name == name:
                return position
        raise InvalidSavepoint(f'savepoint "{name}" does not exist')

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    @property
    def has_writes(self) -> bool:
        """Whether its commit has to go to the store."""
        return self._use is not None and (bool(self._use.draft) or self._use.txn.has_writes)

    @property
    def can_submit(self) -> bool:
        return self._use is not None and not self._use.draft

    def commit(self) -> None:
        """Blocks until it is decided, and where it changes the schema, until all of it is public."""
        try:
            if self._use is None:
                return
            if not self.has_writes:
                self._use.check_frontier()
                return
            self._parts.changer.commit(self._use, asked=self.asked)
        finally:
            self.close()

    def submit(self, on_done: Callable[[], None]) -> None:
        """Hands the commit over and returns; `finish` tells, after `on_done`, how it went."""
        self.use.submit(on_done)

    def finish(self) -> None:
        try:
            self.use.finish_commit()
        finally:
            self.close()

    def close(self) -> None:
        """Gives up what is not committed, and everything it holds; again is harmless."""
        if self._use is not None:
            self._use.close()
        ended, self.on_end = self.on_end, []
        for each in ended:
            each()
