"""The store on PostgreSQL: the engine for several machines.

    reads     one statement each, READ COMMITTED, so of one snapshot; from a pool
    commits   one round trip: a volatile function whose first statement locks the clock row
    urgent    heartbeats have a connection to themselves and never wait behind a large group
    signal    LISTEN/NOTIFY, in a task that reconnects by itself; started with the first subscriber

Commit order is timestamp order because timestamps are given out under the lock on the clock row,
which is held until the commit is durable. No Python runs between lock and COMMIT, so a node that
stalls stalls nobody.

Walk: `storage.addresses` opens it, `kv` calls its `commit` and reads; the SQL is in `postgres.section_sql`
and `postgres.reads`, connections in `postgres.session`, arrays in `postgres.group`, the signal in
`postgres.listener`, the start-up probe in `postgres.probe`.
"""

import hashlib
from collections.abc import Callable, Sequence

from psycopg import sql

from tenure.base.clock import check_offset
from tenure.base.env import Env
from tenure.base.errors import (
    CorruptData,
    InvalidParameter,
    NewerFormat,
    OutcomeUnknown,
    RetryError,
    SessionLost,
    StoreError,
    Unavailable,
)
from tenure.base.timestamp import MAX_AT, Timestamp, from_bytes, micros_of, to_text
from tenure.storage.engine import (
    EVERY_HEAD,
    FORMAT,
    REVISION_BYTES,
    Commit,
    CommitStatus,
    Group,
    Guard,
    History,
    MovedHeads,
    Outcome,
    Portion,
    ReadResult,
    Revision,
    Revisions,
    Scan,
    Spread,
    StoreOrigin,
    WrittenHeads,
)
from tenure.storage.outcomes import decode_outcomes
from tenure.storage.postgres import reads as postgres_reads
from tenure.storage.postgres import section_sql as postgres_sql
from tenure.storage.postgres.distance import Distance
from tenure.storage.postgres.group import ByteaArray, Int8Array, encode_group, encode_reads, head_bounds
from tenure.storage.postgres.listener import NotifyListener
from tenure.storage.postgres.probe import probe
from tenure.storage.postgres.session import Connector, Link, Pool, Rows, StoreConnection

SCHEMA_BYTES_MAX = 40
"""PostgreSQL's names have 63 bytes; the channel's name adds a few to the schema's."""
UNLIMITED = 1 << 48


def _places(count: int) -> bytes:
    return b", ".join([b"%b"] * count)


# psycopg sends constant queries given as bytes without composing them.
_COMMIT_GROUP = b"SELECT verdict, engine_micros, outcomes FROM commit_group(%s)" % _places(53)
_CHECK = (
    b"SELECT c.at, f.status, f.at, f.key FROM clock c LEFT JOIN LATERAL failures(c.at, %s) f ON true"
    % _places(17)
)
_CLUSTER = b"SELECT system_identifier::text FROM pg_control_system()"
_DATABASE = b"SELECT oid::text FROM pg_database WHERE datname = current_database()"
_SETTLE = b"SELECT known_seq, known FROM settle(%b, %b)"
_GET_NOW = postgres_reads.GET_NOW.encode()
_GET_AT = postgres_reads.GET_AT.encode()
_GET_MANY_NOW = postgres_reads.GET_MANY_NOW.encode()
_GET_MANY_AT = postgres_reads.GET_MANY_AT.encode()
_HISTORY = postgres_reads.HISTORY.encode()
_REVISIONS = postgres_reads.REVISIONS.encode()
_SPREAD = postgres_reads.SPREAD.encode()
_CUTS = postgres_reads.CUTS.encode()
_MOVED_HEADS = postgres_reads.MOVED_HEADS.encode()
_WRITTEN_HEADS = postgres_reads.WRITTEN_HEADS.encode()
_PORTIONS = postgres_reads.PORTIONS.encode()
_ORDERS = ("ASC", "DESC")
_SCAN_NOW = tuple(postgres_reads.scan_now(order).encode() for order in _ORDERS)
_SCAN_AT = tuple(postgres_reads.scan_at(order).encode() for order in _ORDERS)
_DIFF = tuple(postgres_reads.diff(order).encode() for order in _ORDERS)


LANE_CLOSED = "the node that sent this commit was declared dead: its lane is closed"


class PostgresEngine:
    name = "postgres"

    def __init__(self, dsn: str, env: Env, *, schema: str = "tenure", pool_size: int = 8) -> None:
        if not 0 < len(schema.encode()) <= SCHEMA_BYTES_MAX or '"' in schema:
            raise InvalidParameter(f'"{schema}" cannot be the name of the store\'s schema')
        self._env = env
        self._schema = schema
        self._connector = Connector(dsn, schema)
        self._prepare(schema)
        probe(self._connector, env)
        distance = Distance(env)
        self._pool = Pool(self._connector, env, pool_size, distance)
        self._normal = Link(self._connector, env, distance)
        self._urgent = Link(self._connector, env, distance)
        self._urgent_lanes: set[bytes] = set()
        self._listener = NotifyListener(self._connector, env, f"{schema}.commit")

    def _prepare(self, schema: str) -> None:
        connection = self._connector.connect()
        try:
            with self._connector.translating(), connection.transaction():
                # Two nodes that start at once take turns, so the second finds everything created.
                connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"tenure {schema}"])
                create_tables(connection, schema)
        finally:
            connection.close()

    # -- reads

    def get(self, key: bytes, guard: Guard, at: Timestamp | None = None) -> ReadResult:
        arguments: dict[str, object] = {**guard._asdict(), "key": key}
        if at is None:
            return _found(self._pool.run(_GET_NOW, arguments))
        return _found(self._pool.run(_GET_AT, {**arguments, "at": at}))

    def get_many(self, keys: Sequence[bytes], guard: Guard, at: Timestamp | None = None) -> ReadResult:
        arguments: dict[str, object] = {**guard._asdict(), "keys": ByteaArray(keys)}
        if at is None:
            return _found(self._pool.run(_GET_MANY_NOW, arguments))
        return _found(self._pool.run(_GET_MANY_AT, {**arguments, "at": at}))

    def scan(self, query: Scan) -> ReadResult:
        arguments: dict[str, object] = {
            **query.guard._asdict(),
            "lo": query.lo,
            "hi": query.hi,
            "limit": UNLIMITED if query.limit is None else query.limit,
        }
        if query.since_at is not None:
            first, beyond = head_bounds(query.lo, query.hi)
            at = MAX_AT if query.at is None else query.at
            arguments |= {"first": first, "beyond": beyond, "since": query.since_at, "at": at}
            return _found(self._pool.run(_DIFF[query.reverse], arguments))
        arguments["tombstones"] = query.tombstones
        if query.at is None:
            return _found(self._pool.run(_SCAN_NOW[query.reverse], arguments))
        return _found(self._pool.run(_SCAN_AT[query.reverse], {**arguments, "at": query.at}))

    def revisions(self, query: Revisions) -> ReadResult:
        arguments: dict[str, object] = {
            **query.guard._asdict(),
            "lo": query.lo,
            "hi": query.hi,
            "since": query.since_at,
            "until": query.until_at,
            "limit": query.limit,
        }
        found = _found(self._pool.run(_REVISIONS, arguments))
        keys = {revision.key for revision in found.revisions}
        kept = [each for each in found.revisions if query.since_at < each.at <= query.until_at]
        kept.sort(key=lambda revision: (revision.key, revision.at))
        return found._replace(revisions=kept, last=max(keys) if len(keys) == query.limit else b"")

    def moved_heads(self, since_at: Timestamp) -> MovedHeads:
        ((clock_at, kept_since_at, _), *rows) = self._pool.run(_MOVED_HEADS, {"since": since_at})
        if kept_since_at is None or kept_since_at > since_at:
            return MovedHeads(clock_at, None)
        return MovedHeads(clock_at, frozenset(row[2] for row in rows))

    def written_heads(self) -> WrittenHeads:
        written_at = {head: at for at, _, head in self._pool.run(_WRITTEN_HEADS, {})}
        return WrittenHeads(written_at.pop(EVERY_HEAD, MAX_AT), written_at)

    def spread(self, lo: bytes, hi: bytes, since_at: Timestamp, every: int) -> Spread:
        arguments = {"lo": lo, "hi": hi, "since": since_at}
        ((keys, size, _),) = self._pool.run(_SPREAD, arguments)
        cuts = self._pool.run(_CUTS, {**arguments, "every": every}) if keys >= every else []
        return Spread(keys, size, [row[0] for row in cuts])

    def portions(
        self, lo: bytes, hi: bytes, since_at: Timestamp, until_at: Timestamp, size_max: int
    ) -> list[Portion]:
        arguments: dict[str, object] = {"lo": lo, "hi": hi, "since": since_at, "until": until_at}
        rows = self._pool.run(_PORTIONS, {**arguments, "size_max": size_max, "each": REVISION_BYTES})
        return [Portion(*row) for row in rows]

    def history(self, query: History) -> ReadResult:
        first, beyond = head_bounds(query.lo, query.hi)
        limit = UNLIMITED if query.limit is None else max(1, query.limit)
        arguments: dict[str, object] = {
            **query.guard._asdict(),
            "lo": query.lo,
            "hi": query.hi,
            "first": first,
            "beyond": beyond,
            "since": query.since_at,
            # Nothing is committed above the clock, so no bound is the clock of the snapshot.
            "until": MAX_AT if query.until_at is None else query.until_at,
        }
        while True:
            # One more than requested, and all that share its timestamp: so a cut is noticed.
            found = _found(self._pool.run(_HISTORY, {**arguments, "limit": limit + 1}))
            cut = _cut(found, found.clock_at if query.until_at is None else query.until_at, limit)
            if cut is not None:
                return cut
            limit = len(found.revisions)  # a single transaction is larger than the limit

    def check(self, commit: Commit) -> tuple[Timestamp, Outcome | None]:
        arguments = [Int8Array([commit.read_at]), *encode_reads([commit._replace(absent=())])]
        clock_at, status, at, key = self._pool.run(_CHECK, arguments)[0]
        return clock_at, None if status is None else Outcome(CommitStatus(status), at, key)

    def clock_at(self) -> Timestamp:
        return int(self._pool.run(b"SELECT at FROM clock", [])[0][0])

    def wall_micros(self) -> int:
        return int(self._pool.run(b"SELECT wall_micros()", [])[0][0])

    # -- the section

    def push_clock(self, at: Timestamp) -> Timestamp:
        clock_at = self._normal.run(b"SELECT push_clock(%b)", [at])[0][0]
        if clock_at is None:
            raise InvalidParameter(f"timestamp {to_text(at)} lies in the future of the store")
        return int(clock_at)

    def open_lane(self, *, urgent: bool = False) -> bytes:
        lane = self._env.rng.randbytes(16)
        if urgent:
            self._urgent_lanes.add(lane)
        self._link(lane).run(b"INSERT INTO lane (id, seq) VALUES (%b, 0) RETURNING seq", [lane])
        return lane

    def close_lane(self, lane: bytes) -> None:
        self._link(lane).run(b"DELETE FROM lane WHERE id = %b RETURNING seq", [lane])
        self._urgent_lanes.discard(lane)

    def enter(self, lane: bytes, *, wait: bool) -> bool:
        return True

    def leave(self, lane: bytes) -> None:
        """`enter` took nothing."""

    def commit(self, group: Group) -> list[Outcome]:
        rows = self._link(group.lane).run(_COMMIT_GROUP, encode_group(group))
        verdict, engine_micros, outcomes = rows[0]
        if verdict == postgres_sql.VERDICT_LANE_GONE:
            raise SessionLost(LANE_CLOSED)
        if verdict == postgres_sql.VERDICT_REFUSED:
            raise RetryError("the group was refused: its outcome had already been settled")
        if verdict == postgres_sql.VERDICT_CLOCK_AHEAD:
            check_offset(
                node_micros=micros_of(group.wall_at),
                engine_micros=engine_micros,
                max_offset_micros=group.max_offset_micros,
            )
        return decode_outcomes(outcomes)

    def settle(self, lane: bytes, seq: int) -> list[Outcome] | None:
        known_seq, outcomes = self._link(lane).run(_SETTLE, [lane, seq])[0]
        if known_seq is None:
            raise OutcomeUnknown(LANE_CLOSED)
        if known_seq > seq:
            raise OutcomeUnknown(f"lane {lane.hex()} has gone on to group {known_seq}, past {seq}")
        return None if outcomes is None else decode_outcomes(outcomes)

    def _link(self, lane: bytes) -> Link:
        return self._urgent if lane in self._urgent_lanes else self._normal

    # -- the signal, the end

    def subscribe(
        self, wake: Callable[[], None], spans: Sequence[tuple[bytes, bytes]] = ()
    ) -> Callable[[], None]:
        return self._listener.subscribe(wake, spans)

    def origin(self) -> StoreOrigin:
        ((database,),) = self._pool.run(_DATABASE, {})
        try:
            ((cluster,),) = self._pool.run(_CLUSTER, {})
        except Unavailable:
            raise
        except StoreError:  # not every database that speaks PostgreSQL has such a number or shows it
            cluster = "unknown"
        return StoreOrigin(f"cluster {cluster} database {database} schema {self._schema}")

    def close(self) -> None:
        self._listener.close()
        for part in (self._pool, self._normal, self._urgent):
            part.close()


def create_tables(connection: StoreConnection, schema: str) -> None:
    """Creates what is missing, and updates the functions; refuses a newer format."""
    row = connection.execute("SELECT to_regclass('meta')::text").fetchone()
    meta = {} if row is None or row[0] is None else _meta(connection)
    if int(meta.get("format", FORMAT)) > FORMAT:
        raise NewerFormat(
            f'the store in schema "{schema}" has format {meta["format"]}; '
            f"this Tenure reads up to format {FORMAT}",
            hint="Upgrade Tenure on this node to the version of the others.",
        )
    # Without the right to create, a node can still use a store that is complete.
    digest = hashlib.sha256((postgres_sql.TABLES + postgres_sql.FUNCTIONS).encode()).hexdigest()
    if meta.get("digest") == digest:
        return
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    connection.execute(postgres_sql.TABLES.encode())
    connection.execute(postgres_sql.FUNCTIONS.encode())
    connection.execute(
        "INSERT INTO meta (name, value) VALUES ('format', %s), ('digest', %s) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [str(FORMAT), digest],
    )


def _meta(connection: StoreConnection) -> dict[str, str]:
    return dict(connection.execute("SELECT name, value FROM meta").fetchall())


def _found(rows: Rows) -> ReadResult:
    """The first row carries clock and marks: see `postgres.section_sql`."""
    threshold, clock_at, cleaned = rows[0]
    if clock_at is None:
        raise CorruptData("the store's clock row is missing")
    revisions = [Revision(*row) for row in rows[1:]]
    return ReadResult(clock_at, from_bytes(threshold or b""), from_bytes(cleaned or b""), revisions)


def _cut(found: ReadResult, until_at: Timestamp, limit: int) -> ReadResult | None:
    """Cuts a history to its limit between timestamps; None if not even one would be left."""
    if len(found.revisions) <= limit:
        return found._replace(through_at=until_at)
    through_at = found.revisions[limit].at - 1
    kept = [revision for revision in found.revisions if revision.at <= through_at]
    return found._replace(revisions=kept, through_at=through_at) if kept else None
