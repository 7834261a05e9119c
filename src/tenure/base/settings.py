"""The settings of the cluster: each with its name, default, limits and what it does.

Walk: parts get a `Settings`, or only the value they need; `cluster.settings` stores values of these.
"""

from tenure.base.feed_settings import FEED_SETTINGS
from tenure.base.setting_kinds import BOOL, DURATION, INT, ISOLATION_LEVEL
from tenure.base.setting_values import AnySetting as AnySetting
from tenure.base.setting_values import Setting as Setting
from tenure.base.setting_values import Settings as Settings

MAX_OFFSET = Setting(
    name="clock.max_offset",
    kind=DURATION,
    default=0.5,
    # Below 50 ms the clocks of machines with NTP, and pauses of the machine, would make healthy nodes refuse.
    # Ten seconds is far above what any time service leaves; more would only hide a broken clock.
    lower=0.05,
    upper=10.0,
    description="How far a node's clock may be ahead of the store's before it refuses to commit.",
)

MAX_BYTES = Setting(
    name="kv.transaction.max_bytes",
    kind=INT,
    default=64 * 1024 * 1024,
    # The exclusive section writes them all while all other commits wait.
    lower=64 * 1024,
    upper=1024 * 1024 * 1024,
    unit="bytes",
    description="How many bytes of keys and values one transaction may write.",
)

MAX_ROWS = Setting(
    name="kv.transaction.max_rows",
    kind=INT,
    # The exclusive section takes about half a second for as many.
    default=200_000,
    lower=1_000,
    upper=10_000_000,
    unit="rows",
    description="How many keys one transaction may write.",
)

ATTEMPTS = Setting(
    name="kv.transaction.attempts",
    kind=INT,
    default=20,
    lower=1,
    upper=1_000,
    description="How often a transaction is run in all before its retryable failure is handed on.",
)

WATCH_POLL_INTERVAL = Setting(
    name="kv.watch.poll_interval",
    kind=DURATION,
    default=1.0,
    # Notifications carry the load; the poll only bounds how long a lost one can matter.
    lower=0.01,
    upper=300.0,
    description="How long a watch waits at most before it looks for changes without being notified.",
)

PROTECTED_RECORDS_MAX = Setting(
    name="kv.protected_timestamp.max_records",
    kind=INT,
    # Each node keeps all of them in memory, and each sweep asks all that cover an index.
    default=512,
    lower=1,
    upper=100_000,
    unit="records",
    description="How many protections there may be.",
)

PROTECTED_SPANS_MAX = Setting(
    name="kv.protected_timestamp.max_spans",
    kind=INT,
    # As for the records. A target is a span or an object: a database, a schema, a table.
    default=4_096,
    lower=1,
    upper=1_000_000,
    unit="targets",
    description="How many targets, spans and objects together, all protections may name.",
)

PROTECTED_REFRESH_INTERVAL = Setting(
    name="kv.protected_timestamp.refresh_interval",
    kind=DURATION,
    # A sweep publishes with the newest state or not at all: an old state delays it, and removes nothing.
    default=300.0,
    lower=0.1,
    upper=3_600.0,
    description="How long a node waits at most before it asks whether protections have changed.",
)

LIVENESS_TTL = Setting(
    name="liveness.ttl",
    kind=DURATION,
    default=40.0,
    # A node that is slow for a second must not be declared dead; the others wait for a dead one.
    lower=0.5,
    upper=3_600.0,
    description="How long a node session lives without a heartbeat before others may delete it.",
)

LIVENESS_HEARTBEAT = Setting(
    name="liveness.heartbeat",
    kind=DURATION,
    default=5.0,
    lower=0.05,
    upper=600.0,
    description="How often a node extends its session, with a jitter of a tenth.",
)

JOBS_ADOPT_INTERVAL = Setting(
    name="jobs.adopt_interval",
    kind=DURATION,
    default=30.0,
    # Watches and expiries wake the runner; the poll only bounds how long a lost wake can matter.
    lower=0.1,
    upper=3_600.0,
    description="How long a node waits at most before it looks for jobs to adopt without being woken.",
)

JOBS_RETENTION = Setting(
    name="jobs.retention",
    kind=DURATION,
    default=14 * 86_400.0,
    lower=60.0,
    upper=10 * 365 * 86_400.0,
    description="How long a job that has ended is kept.",
)

LEASE_POLL_INTERVAL = Setting(
    name="lease.poll_interval",
    kind=DURATION,
    default=300.0,
    lower=0.1,
    upper=3_600.0,
    description="How long a node waits at most before it looks for schema changes without being told.",
)

LEASE_DURATION = Setting(
    name="lease.duration",
    kind=DURATION,
    default=300.0,
    # A transaction that uses an older version may run as long; a schema change waits for it as long.
    lower=0.5,
    upper=86_400.0,
    description="How long an expiring lease on one descriptor lasts; only nodes of version 1 rely on them.",
)

LEASE_HOLDER_GRACE = Setting(
    name="lease.holder_grace",
    kind=DURATION,
    default=300.0,
    lower=0.1,
    upper=86_400.0,
    description="How long a transaction may hold up a schema change before it is ended.",
)

VERSION = Setting(
    name="version",
    kind=INT,
    # The version of a cluster for which none was set: newer nodes then behave like the older version.
    default=1,
    lower=1,
    upper=1_000,
    description="The version that all nodes of the cluster understand; setting it finalizes an upgrade.",
)

QUERY_MEMORY = Setting(
    name="sql.query_memory",
    kind=INT,
    default=256 * 1024 * 1024,
    lower=1024 * 1024,
    upper=1 << 40,
    unit="bytes",
    description="How much memory one statement or cursor may hold: sorts, joins, groups, values, kept rows.",
)

SESSION_MEMORY = Setting(
    name="sql.session_memory",
    kind=INT,
    default=0,
    lower=0,
    upper=1 << 50,
    unit="bytes",
    description="How much memory the statements, cursors and buffers of one session may hold together; "
    "0 is a quarter of the node's.",
)

USER_MEMORY = Setting(
    name="sql.user_memory",
    kind=INT,
    default=0,
    lower=0,
    upper=1 << 50,
    unit="bytes",
    description="How much memory all sessions of one user may hold on a node; 0 is half of the node's.",
)

NODE_MEMORY = Setting(
    name="sql.node_memory",
    kind=INT,
    default=0,
    lower=0,
    upper=1 << 50,
    unit="bytes",
    description="How much memory a node's process may have before statements are refused more; "
    "0 is half of its machine's or container's.",
)

DUCKDB_MEMORY = Setting(
    name="sql.duckdb_memory",
    kind=INT,
    default=512 * 1024 * 1024,
    lower=64 * 1024 * 1024,
    upper=1 << 40,
    unit="bytes",
    description="How much memory all analytical queries of a node may take together, at most a third of its "
    "memory, besides a quarter as much for files that they read often; read when it starts.",
)

COLUMNS_MEMORY = Setting(
    name="sql.columns_memory",
    kind=INT,
    default=192 * 1024 * 1024,
    lower=1024 * 1024,
    upper=1 << 40,
    unit="bytes",
    description="How much of its tables a node keeps as columns in memory, at most an eighth of its memory; "
    "read when it starts.",
)

STATEMENT_TIMEOUT = Setting(
    name="sql.statement_timeout",
    kind=DURATION,
    default=0.0,
    lower=0.0,
    upper=30 * 86_400.0,
    description="How long a statement may run where its session says nothing; 0 is no limit.",
)

IDLE_IN_TRANSACTION_TIMEOUT = Setting(
    name="sql.idle_in_transaction_session_timeout",
    kind=DURATION,
    default=0.0,
    lower=0.0,
    upper=30 * 86_400.0,
    description="How long a session may be idle in a transaction where it says nothing; 0 is no limit.",
)

USER_CONNECTIONS_MAX = Setting(
    name="sql.user_connections_max",
    kind=INT,
    # Half of a node's limit: one user must not keep the others out.
    default=2_500,
    lower=1,
    upper=65_000,
    unit="connections",
    description="How many connections one user other than root may have to a node.",
)

USER_STATEMENTS_MAX = Setting(
    name="sql.user_statements_max",
    kind=INT,
    # Each costs a thread, most of which wait.
    default=250,
    lower=1,
    upper=65_000,
    unit="statements",
    description="How many statements of one user, outside of transactions, may be under way; more queue.",
)

DEFAULT_TRANSACTION_ISOLATION = Setting(
    name="sql.default_transaction_isolation",
    kind=ISOLATION_LEVEL,
    default="serializable",
    description="Of transactions where the session says nothing: serializable or read committed.",
)

CROSS_DATABASE_REFERENCES = Setting(
    name="sql.cross_database_references",
    kind=BOOL,
    default=False,
    description="Whether foreign keys, views, types and defaults may refer to objects of other databases.",
)

RESULT_BYTES_MAX = Setting(
    name="sql.result_bytes_max",
    kind=INT,
    default=4 * 1024**3,
    lower=1024 * 1024,
    upper=1 << 50,
    unit="bytes",
    description="How large the result of one statement may be.",
)

SPARK_MIN_ROWS = Setting(
    name="pipeline.spark_min_rows",
    kind=INT,
    default=100_000,
    lower=0,
    upper=1 << 40,
    unit="rows",
    description="Bulk work of more rows runs on Spark; what is smaller runs in a node, without Java.",
)

FLUSH_BYTES = Setting(
    name="lake.flush_bytes",
    kind=INT,
    default=128 * 1024 * 1024,
    lower=1024,
    upper=1 << 50,
    unit="bytes",
    description="An index with more than this in the store, beyond its base, is flushed to the lake.",
)

CLEAN_AFTER = Setting(
    name="lake.clean_after",
    kind=DURATION,
    default=600.0,
    lower=0.0,
    upper=30 * 86_400.0,
    description="How long rows stay in the store after they were flushed: longer than transactions run.",
)

FILE_GRACE = Setting(
    name="lake.file_grace",
    kind=DURATION,
    default=3_600.0,
    lower=0.0,
    upper=30 * 86_400.0,
    description="How long a file of the lake stays once a newer one took its place: longer than queries run.",
)

LAKE_MEMORY = Setting(
    name="lake.cache_memory",
    kind=INT,
    default=64 * 1024 * 1024,
    lower=1024 * 1024,
    upper=1 << 40,
    unit="bytes",
    description="How much of the lake's files a node keeps decoded for lookups by key; read when it starts.",
)

GC_INTERVAL = Setting(
    name="gc.interval",
    kind=DURATION,
    # What may go is gone two intervals after its ttl. Each time, the history of an index that was written to
    # is looked at as a whole: with the default ttl of four hours about fifty times before it goes;
    # decision 0105 says why.
    default=300.0,
    lower=0.1,
    upper=7 * 86_400.0,
    description="How often history that nobody needs any more is removed.",
)

GC_SYSTEM_TTL = Setting(
    name="gc.system_ttl",
    kind=DURATION,
    default=3_600.0,
    # A transaction that has read system records, DDL for example, cannot commit after that time.
    lower=1.0,
    upper=30 * 86_400.0,
    description="How long the history of sessions, jobs, leases, locks and manifests is kept.",
)

CHECKPOINT_FREQUENCY = Setting(
    name="changefeed.min_checkpoint_frequency",
    kind=DURATION,
    default=30.0,
    lower=0.05,
    upper=86_400.0,
    description="How often a changefeed saves how far it has come, if it tells no resolved timestamps.",
)

DEFINITIONS: tuple[AnySetting, ...] = (
    CHECKPOINT_FREQUENCY,
    *FEED_SETTINGS,
    GC_INTERVAL,
    GC_SYSTEM_TTL,
    SPARK_MIN_ROWS,
    FLUSH_BYTES,
    CLEAN_AFTER,
    FILE_GRACE,
    LAKE_MEMORY,
    QUERY_MEMORY,
    SESSION_MEMORY,
    USER_MEMORY,
    NODE_MEMORY,
    DUCKDB_MEMORY,
    COLUMNS_MEMORY,
    STATEMENT_TIMEOUT,
    USER_CONNECTIONS_MAX,
    USER_STATEMENTS_MAX,
    IDLE_IN_TRANSACTION_TIMEOUT,
    CROSS_DATABASE_REFERENCES,
    DEFAULT_TRANSACTION_ISOLATION,
    RESULT_BYTES_MAX,
    VERSION,
    MAX_OFFSET,
    MAX_BYTES,
    MAX_ROWS,
    ATTEMPTS,
    WATCH_POLL_INTERVAL,
    PROTECTED_RECORDS_MAX,
    PROTECTED_SPANS_MAX,
    PROTECTED_REFRESH_INTERVAL,
    LIVENESS_TTL,
    LIVENESS_HEARTBEAT,
    JOBS_ADOPT_INTERVAL,
    JOBS_RETENTION,
    LEASE_POLL_INTERVAL,
    LEASE_DURATION,
    LEASE_HOLDER_GRACE,
)
