"""The job of a changefeed: emits until it is ended, and saves how far it has come.

    step ... step ──► commit of the sink ──► checkpoint ──► the protection follows ──► step ...

The order makes it restartable at any point: what the job's record says is in the sink is there. A run that
begins asks the sink first, which may be ahead of the record.

The protection keeps all history after the last checkpoint, so that the next run can read it; it moves with
checkpoints, but not with each of them, because sweeps read what protections change. It is made with the job,
and ends with it. If the feed's options say so, it expires when the last checkpoint is too old: that ends the
feed.

A sink cannot be fenced. So the claim is confirmed before each commit of the sink, a send to another machine
starts only while it is sure to end under this claim (`changefeed.sinks.send_window`), and what a run without
a claim could write is told apart by its run number.

A feed may go on for years: the rights of its creator are asked for before each commit of the sink, too.

Walk: `sql.statements.jobs.changefeeds` -> `start`; `composition.job_layer` -> `changefeed_kind`;
`cluster.jobs.runner` -> `FeedRun.run` -> `Feed.step`, `Sink.commit`, `Run.checkpoint`.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenure.base.settings import CHECKPOINT_FREQUENCY
from tenure.base.timestamp import ZERO_AT, to_text
from tenure.catalog.accounts.privileges import CHANGEFEED
from tenure.catalog.accounts.rights import Rights, require_files
from tenure.catalog.accounts.sealing import sealed, unsealed
from tenure.catalog.leases.access_sources import StoredAccess
from tenure.changefeed.altering import reconciled
from tenure.changefeed.client_stream import Follow
from tenure.changefeed.feed import Feed
from tenure.changefeed.ordering import OrderedSink, held_back
from tenure.changefeed.records import FeedPayload, FeedPosition
from tenure.changefeed.sinks.destinations import Destination, destination_of
from tenure.changefeed.sinks.send_window import SendWindow
from tenure.changefeed.sinks.sink import Sink, SinkRun
from tenure.changefeed.table_stream import FeedSources
from tenure.cluster.jobs.job_table import Job, Jobs
from tenure.cluster.jobs.runs import SQL, JobKind, Run
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.records import pack, replace, unpack
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.retention.job_protections import JobProtections
from tenure.retention.protections.protection_records import Mode, Targets
from tenure.storage.locations import Locations

KIND = "changefeed"

WAIT_SECONDS = 0.2
"""How long a wait looks at nothing but signals, before the run sees whether it was told to stop."""

COMMIT_BYTES = 64 << 20
"""A batch of so many bytes is committed before its time: a crash costs no more work than that."""

MOVE_SECONDS = 5.0
"""The least time between two moves of the protection: each makes sweeps under way compute anew."""


class FeedServices(NamedTuple):
    sources: FeedSources
    jobs: Jobs
    protections: JobProtections
    locations: Locations
    session: Callable[[], NodeSession]
    follow: Follow = lambda read: lambda: None
    """Protects the history that a stream to a client still needs; see `retention.long_reads`."""

    def destination(self, text: str) -> Destination:
        return destination_of(text, self.locations, self.sources.store.settings)


def start(
    txn: Transaction, services: FeedServices, payload: FeedPayload, *, owner: str, description: str
) -> Job:
    """Creates the job, and protects all that it is going to read."""
    is_secret = services.destination(payload.sink).is_secret
    id = services.jobs.fresh_id(txn)
    keyspace = services.sources.store.keyspace
    kept = replace(payload, sink=sealed(txn, keyspace, id, payload.sink, is_secret=is_secret))
    services.protections.protect(
        *(txn, id, payload.start.needed_at, Mode.AFTER, Targets(_objects(payload))),
        expires_after=payload.options.protect_seconds,
        role=owner,
    )
    return services.jobs.create(
        txn, kind=KIND, id=id, payload=pack(kept), owner=owner, description=description, needs=(SQL,)
    )


def _objects(payload: FeedPayload) -> tuple[int, ...]:
    """What is protected: a schema or database covers the tables that come later too."""
    return tuple(each.id for each in payload.tables) if payload.scope is None else (payload.scope.id,)


def changefeed_kind(services: FeedServices) -> JobKind:
    def run(run: Run) -> None:
        is_over = False
        while not is_over:  # once more after each alteration
            payload = payload_of(services, run)
            destination = services.destination(payload.sink)
            _check_creator(services, run, payload, destination)
            is_over = FeedRun(services, run, payload, destination).run()

    return JobKind(run)


def _check_creator(services: FeedServices, run: Run, payload: FeedPayload, destination: Destination) -> None:
    """A run begins, and goes on, only if the role that created the feed may still have it."""
    saved = unpack(run.progress.data, FeedPosition) if run.progress.data else payload.start
    require_files(_rights(services, run), destination.role, destination.action)
    if payload.scope is not None:
        _require(services, run, payload.scope.id, owns=True)
    for position in saved.tables:
        _require(services, run, position.table)


def _rights(services: FeedServices, run: Run) -> Rights:
    now = services.sources.store.snapshot()
    job = services.jobs.get(now, run.job.id) or run.job  # its role may have been renamed since the run began
    return Rights(StoredAccess(services.sources.catalog, now), job.owner)


def _require(services: FeedServices, run: Run, object: int, *, owns: bool = False) -> None:
    """What is gone has nothing that could be read without right."""
    found = services.sources.catalog.get(services.sources.store.snapshot(), object)
    if found is None:
        return
    rights = _rights(services, run)
    if owns:
        rights.require_owner(found)
    else:
        rights.require(found, CHANGEFEED)


def payload_of(services: FeedServices, run: Run) -> FeedPayload:
    return stored_payload(services.sources.store.snapshot(), services, run.job.id)


def stored_payload(txn: Transaction | Snapshot, services: FeedServices, id: int) -> FeedPayload:
    """The newest: a feed may have been altered since its run began."""
    job = services.jobs.get(txn, id)
    assert job is not None, "a job that is not over is there"
    kept = unpack(job.payload, FeedPayload)
    return replace(kept, sink=unsealed(txn, services.sources.store.keyspace, id, kept.sink))


def alter(txn: Transaction, services: FeedServices, id: int, payload: FeedPayload) -> None:
    """Gives a feed another payload, and protects what it adds."""
    job = services.jobs.get(txn, id)
    assert job is not None, "the caller has found it"
    sink = unpack(job.payload, FeedPayload).sink
    services.jobs.change_payload(txn, id, pack(replace(payload, sink=sink)))
    news = tuple(each.table for each in payload.added if each.number == payload.number)
    if news:
        services.protections.protect(
            *(txn, id, txn.read_at, Mode.AFTER, Targets(news)), expires_after=payload.options.protect_seconds
        )


def _sink_run(services: FeedServices, run: Run, payload: FeedPayload) -> SinkRun:
    store = services.sources.store
    return SinkRun(
        *(run.job.id, run.fence.run, payload.options, tuple(each.name for each in payload.tables)),
        env=store.env,
        settings=lambda: store.settings,
        begin_send=SendWindow(store, services.session, run).wait,
        sleep=run.sleep,
    )


def _sources_of(services: FeedServices, run: Run) -> FeedSources:
    """What a run reads from; it asks for locks in the name of its job."""
    sources = services.sources
    return sources if sources.node is None else sources._replace(node=sources.node.of_job(run.job.id))


class FeedRun:
    def __init__(
        self, services: FeedServices, run: Run, payload: FeedPayload, destination: Destination
    ) -> None:
        self._services = services
        self._run = run
        self._env = services.sources.store.env
        self._payload = payload
        self._destination = destination
        saved = unpack(run.progress.data, FeedPosition) if run.progress.data else payload.start
        self._sink: Sink = destination.open(_sink_run(services, run, payload))
        if payload.options.is_ordered:
            self._sink = OrderedSink(self._sink)
        resumed = self._sink.resume(saved)
        now_at = services.sources.store.snapshot().at
        self._saved = reconciled(payload, resumed, told_at=resumed.resolved_at, now_at=now_at)
        """The position of the last commit of the sink."""
        self._feed = Feed(
            *(_sources_of(services, run), payload.tables, payload.options, self._saved, self._sink),
            scope=payload.scope,
            selection=payload.selection,
            admit=lambda position: _require(services, run, position.table),
        )
        self._due = self._env.monotonic()
        self._move_due = self._look_due = self._due

    def run(self) -> bool:
        """Returns when all is emitted that the feed was asked for; False: the feed was altered. Stopped ends
        it at any point.
        """
        try:
            while not self._feed.is_done and self._feed.ending is None:
                self._run.check()
                if self._is_altered():
                    self._commit()
                if self._saved.altered > self._payload.number:
                    return False
                is_busy = self._feed.step()
                if self._is_due():
                    self._commit()
                if not is_busy:
                    self._feed.wait(min(WAIT_SECONDS, max(0.0, self._due - self._env.monotonic())))
            self._commit()
            if self._saved.altered > self._payload.number:
                return False
            if self._feed.ending is not None:
                raise self._feed.ending
            return True
        finally:
            self._feed.close()
            self._sink.close()

    def _is_altered(self) -> bool:
        now = self._env.monotonic()
        if now < self._look_due:
            return False
        self._look_due = now + WAIT_SECONDS
        newest = payload_of(self._services, self._run)
        return newest.number > self._payload.number

    @property
    def _interval(self) -> float:
        options = self._payload.options
        by_setting: float = self._services.sources.store.settings[CHECKPOINT_FREQUENCY]
        chosen = options.resolved_seconds or options.checkpoint_seconds
        return by_setting if chosen is None else chosen

    def _is_due(self) -> bool:
        if self._feed.bytes - self._saved.bytes >= COMMIT_BYTES:
            return True
        return self._env.monotonic() >= self._due and self._feed.position != self._saved

    def _commit(self) -> None:
        """Emitted and flushed, then the checkpoint, then the protection moves."""
        position = self._feed.position
        if self._payload.options.is_ordered:
            position = held_back(position, self._feed.beginnings)
        # The claim is still there; and what is altered after this is above what is told now.
        newest = self._run.transact(lambda txn: stored_payload(txn, self._services, self._run.job.id))
        if newest.number > self._payload.number:
            now_at = self._services.sources.store.snapshot().at
            position = reconciled(newest, position, told_at=self._saved.resolved_at, now_at=now_at)
        if self._has_news(position):
            _check_creator(self._services, self._run, self._payload, self._destination)
            position = self._sink.commit(position)
            self._feed.committed(position)
        self._saved = position
        self._checkpoint(position)
        self._due = self._env.monotonic() + self._interval

    def _has_news(self, position: FeedPosition) -> bool:
        """Whether the sink has something to commit: messages, or a resolved timestamp that is to be told."""
        options, has_moved = self._payload.options, position.resolved_at > self._saved.resolved_at
        if options.is_ordered:
            return has_moved
        return position.rows > self._saved.rows or (has_moved and options.resolved_seconds is not None)

    def _checkpoint(self, position: FeedPosition) -> None:
        now, at = self._env.monotonic(), position.resolved_at
        moves = at > ZERO_AT and now >= self._move_due

        def move(txn: Transaction) -> None:
            if moves:
                self._services.protections.move_forward(txn, self._run.job.id, at)

        status = f"resolved {to_text(at)}" if at else "initial scan"
        self._run.checkpoint(fraction=0.0, status=status, data=pack(position), also=move)
        if moves:
            self._move_due = now + MOVE_SECONDS
