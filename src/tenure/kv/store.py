"""The store, as one tenant's node sees it: transactions, snapshots, history and watches.

Walk: `composition.storage_layer` builds one over an engine; everything above reads and writes through it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from tenure.base.clock import Clock
from tenure.base.env import Env
from tenure.base.errors import InvalidParameter, RetryError, TenureError
from tenure.base.retries import Pauses, Retries
from tenure.base.settings import (
    ATTEMPTS,
    DEFINITIONS,
    MAX_BYTES,
    MAX_OFFSET,
    MAX_ROWS,
    WATCH_POLL_INTERVAL,
    Settings,
)
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.bases import NO_BASES, Bases
from tenure.kv.buffer import CommitLimits
from tenure.kv.commits import Committer
from tenure.kv.keys import Keyspace, Span
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.scope import ReadAhead, Scope, TransactionState
from tenure.kv.snapshot import Snapshot, judge
from tenure.kv.transaction import Transaction
from tenure.kv.volume import Volume
from tenure.kv.watch import Watch
from tenure.storage.engine import Commit, Engine, History, ReadResult, Revision

DEFAULT_TENANT = 1

PAUSES = Pauses(0.002, 0.25)
"""The pauses between the attempts of a transaction: they separate rivals within a few attempts."""

T = TypeVar("T")


class Store:
    def __init__(
        self,
        engine: Engine,
        env: Env,
        *,
        tenant: int = DEFAULT_TENANT,
        settings: Settings | None = None,
        uses_engine_clock: bool = False,
    ) -> None:
        """`uses_engine_clock`: commits take the engine's wall clock, a round trip each."""
        settings = settings or Settings(DEFINITIONS)
        self.engine = engine
        self.env = env
        self.keyspace = Keyspace(tenant)
        self.clock = Clock(env, engine.wall_micros if uses_engine_clock else None)
        self.bases: Bases = NO_BASES
        self.volume = Volume()
        self._scope = Scope(engine, self.keyspace, self.clock, _limits(settings), self.bases, self.volume)
        self.settings = settings
        self._committer = Committer(engine, env, self.clock, max_offset_micros=self.max_offset_micros())
        self._urgent = Committer(
            engine, env, self.clock, max_offset_micros=self.max_offset_micros(), urgent=True
        )

    def use_settings(self, settings: Settings) -> None:
        """For transactions that begin from now on: the cluster's settings are in the store, so they are read
        after it opens.
        """
        self.settings = settings
        self._scope = self._scope._replace(limits=_limits(settings))
        for committer in (self._committer, self._urgent):
            committer.max_offset_micros = self.max_offset_micros()

    def max_offset_micros(self) -> int:
        return round(self.settings[MAX_OFFSET] * 1_000_000)

    def use_bases(self, bases: Bases) -> None:
        """From now on, reads see the lake's rows too."""
        self.bases = bases
        self._scope = self._scope._replace(bases=bases)

    def begin(self, *, urgent: bool = False, read_ahead: ReadAhead | None = None) -> Transaction:
        """Starts a transaction; an urgent one (a heartbeat) overtakes the node's other commits.

        Values from `read_ahead` may be stale until the transaction commits; `transact` takes care of that.
        """
        committer = self._urgent if urgent else self._committer
        return Transaction(self._scope, committer, read_ahead=read_ahead)

    def transact(
        self,
        run: Callable[[Transaction], T],
        *,
        attempts: int | None = None,
        urgent: bool = False,
        read_ahead: ReadAhead | None = None,
    ) -> T:
        """Runs a function in a transaction and commits; again, from the start, on RetryError.

        The function may run several times and must have no other effects. OutcomeUnknown is not retried: it
        may have committed. With `read_ahead` the first attempt starts from those values; an error that the
        function raises then may be caused by a stale value, so it is run again without them.
        """
        retries = Retries(attempts or self.settings[ATTEMPTS], PAUSES, self.env)
        while True:
            txn = self.begin(urgent=urgent, read_ahead=read_ahead)
            try:
                result = run(txn)
                txn.commit()
                return result
            except RetryError as error:
                retries.failed(error)
            except TenureError:
                if read_ahead is None or txn.state is not TransactionState.OPEN:
                    raise
            finally:
                txn.rollback()
            read_ahead = None
            retries.pause()

    def snapshot(self, at: Timestamp | None = None, protected: ProtectedRead | None = None) -> Snapshot:
        """Reads as of `at`, or as of now; below the threshold in the name of a protection of `at`.

        A read above the store clock would let a slow node commit below it; so the store clock is
        pushed there first, which the engine refuses for a time that has not come yet.
        """
        clock_at = self.engine.clock_at()
        if at is None:
            at = clock_at
        elif at < ZERO_AT:
            raise InvalidParameter("a timestamp cannot be negative")
        elif at > clock_at:
            clock_at = self.engine.push_clock(at)
        self.clock.observe(clock_at)
        return Snapshot(self.engine, self.keyspace, at, self.bases, protected)

    def look(self, key: bytes) -> ReadResult | None:
        """Reads one key as of now, with the time of the read; None if only a transaction can tell.

        A revision above the cleaned mark is correct; otherwise the lake must be read.
        """
        found = self.engine.get(key, self.keyspace.point_guard(key))
        if found.cleaned_at and not (found.revisions and found.revisions[0].at > found.cleaned_at):
            return None
        self.clock.observe(found.clock_at)
        return found

    def has_changed(self, span: Span, since_at: Timestamp) -> bool:
        """Whether a span may have a revision that is newer than a time: by now, and in one look."""
        assert self.keyspace.owns_span(span), "a span of another tenant"
        _, changed = self.engine.check(Commit(since_at, spans=(span,), guards=(self.keyspace.guard(span),)))
        return changed is not None

    def history(
        self, span: Span, *, since_at: Timestamp, until_at: Timestamp | None = None, limit: int | None = None
    ) -> "RevisionPage":
        """Every revision with since_at < at <= until_at in time order, cut between timestamps."""
        assert self.keyspace.owns_span(span), "a span of another tenant"
        found = self.engine.history(
            History(span.lo, span.hi, self.keyspace.guard(span), since_at, until_at=until_at, limit=limit)
        )
        judge(found, read_at=since_at, flushed_at=since_at)
        self.clock.observe(found.clock_at)
        return RevisionPage(found.revisions, min(found.through_at, found.clock_at))

    def watch(self, spans: Sequence[Span], *, since_at: Timestamp, spacing_seconds: float = 0.0) -> Watch:
        return Watch(
            self.engine,
            self.keyspace,
            self.env,
            self.clock,
            spans,
            since_at=since_at,
            poll_seconds=lambda: self.settings[WATCH_POLL_INTERVAL],
            spacing_seconds=spacing_seconds,
        )

    def lanes(self) -> tuple[bytes, ...]:
        """This node's lanes to the engine: another node closes them if this one dies."""
        return self._committer.lane, self._urgent.lane

    def renew_lanes(self) -> None:
        """Opens new lanes before a new session is made: the old lanes belong to the last session."""
        self._committer.renew_lane()
        self._urgent.renew_lane()

    def close(self) -> None:
        self._committer.close()
        self._urgent.close()


def _limits(settings: Settings) -> CommitLimits:
    return CommitLimits(settings[MAX_ROWS], settings[MAX_BYTES])


class RevisionPage(NamedTuple):
    revisions: Sequence[Revision]
    through_at: Timestamp
    """Complete up to this time; pass it as `since_at` for the rest."""
