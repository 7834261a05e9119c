"""Settings: typed values with names, defaults and limits.

A `Setting[T]` is a definition and at the same time the key to its value, so a type checker knows that
`settings[MAX_OFFSET]` is a float. A `Settings` is a frozen mapping over a tuple of definitions; it holds what
differs from the defaults, and a change makes a new one. There is no registry: the caller that makes a
`Settings` hands the definitions in; `DEFINITIONS` has those of this module.

Text is the form in which settings are stored, set and shown. Durations are seconds, written
with the greatest unit that leaves a whole number: 40s, 500ms, 5m, 14d; a plain number is seconds.

Invariant (settings-limits): a `Settings` never holds a value outside its setting's limits, regardless of the
source of the value, and parsing a rendered value gives that value (durations: to the microsecond).

Walk: `composition.cluster_layer` makes one from the command line; parts get it, or only the value they need.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, TypeAlias, TypeVar

from tenure.base.errors import InvalidParameter
from tenure.base.setting_kinds import DURATION, INT, SettingKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Setting(Generic[T]):
    name: str
    kind: SettingKind[T]
    default: T
    description: str
    lower: T | None = None
    upper: T | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        self.check(self.default)

    def parse(self, text: str) -> T:
        try:
            value = self.kind.parse(text)
        except ValueError as error:
            raise InvalidParameter(
                f'setting "{self.name}" takes {self.kind.name}, not "{text}"', hint=self.description
            ) from error
        return self.check(value)

    def render(self, value: T) -> str:
        return self.kind.render(value)

    def check(self, value: T) -> T:
        """Returns the value, as the setting's own type, if it lies within the limits."""
        typed = self._typed(value)
        if self._is_beyond(typed):
            raise InvalidParameter(
                f'setting "{self.name}" must be {self.limits()}, not {self._shown(typed)}',
                hint=self.description,
            )
        return typed

    def limits(self) -> str:
        lower, upper = self._bounds()
        if lower is not None and upper is not None:
            return f"between {self._shown(lower)} and {self._shown(upper)}"
        if lower is not None:
            return f"at least {self._shown(lower)}"
        return "finite" if upper is None else f"at most {self._shown(upper)}"

    def _bounds(self) -> tuple[T | None, T | None]:
        lower = self.kind.lower if self.lower is None else self.lower
        upper = self.kind.upper if self.upper is None else self.upper
        return lower, upper

    def _typed(self, value: Any) -> T:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if self.kind.python_type is float and is_whole:
            value = float(value)
        if type(value) is not self.kind.python_type:
            raise InvalidParameter(f'setting "{self.name}" takes {self.kind.name}, not {value!r}')
        typed: T = value
        return typed

    def _is_beyond(self, value: Any) -> bool:
        if isinstance(value, float) and not math.isfinite(value):
            return True
        lower: Any
        upper: Any
        lower, upper = self._bounds()
        return (lower is not None and value < lower) or (upper is not None and value > upper)

    def _shown(self, value: T) -> str:
        return f"{self.render(value)} {self.unit}".rstrip()


AnySetting: TypeAlias = Setting[Any]


class Settings(Mapping[AnySetting, Any]):
    """The values of a tuple of settings; frozen."""

    __slots__ = ("_by_name", "_changed", "definitions")

    def __init__(
        self, definitions: Iterable[AnySetting], changed: Mapping[AnySetting, Any] | None = None
    ) -> None:
        self.definitions = tuple(definitions)
        self._by_name = {setting.name: setting for setting in self.definitions}
        assert len(self._by_name) == len(self.definitions), "two settings have one name"
        values = changed or {}
        self._changed = {setting: self.named(setting.name).check(values[setting]) for setting in values}

    @classmethod
    def parse(cls, definitions: Iterable[AnySetting], texts: Mapping[str, str]) -> "Settings":
        """Parses name and value pairs as they are stored or written on a command line."""
        settings = cls(definitions)
        for name, text in texts.items():
            settings = settings.with_text(name, text)
        return settings

    def __getitem__(self, setting: Setting[T]) -> T:
        """Returns the setting's value; raises KeyError for one that is not among the definitions."""
        value: T = self._changed.get(setting, setting.default)
        if self._by_name.get(setting.name) is not setting:
            raise KeyError(setting.name)
        return value

    def __iter__(self) -> Iterator[AnySetting]:
        return iter(self.definitions)

    def __len__(self) -> int:
        return len(self.definitions)

    def named(self, name: str) -> AnySetting:
        setting = self._by_name.get(name)
        if setting is None:
            close = get_close_matches(name, self._by_name, n=1)
            hint = f'Perhaps you meant "{close[0]}".' if close else ""
            raise InvalidParameter(f'setting "{name}" does not exist', hint=hint)
        return setting

    def with_value(self, setting: Setting[T], value: T) -> "Settings":
        return Settings(self.definitions, {**self._changed, setting: value})

    def with_text(self, name: str, text: str) -> "Settings":
        setting = self.named(name)
        return self.with_value(setting, setting.parse(text))

    def without(self, name: str) -> "Settings":
        """Puts a setting back to its default."""
        setting = self.named(name)
        return Settings(self.definitions, {s: v for s, v in self._changed.items() if s is not setting})

    def text(self, name: str) -> str:
        setting = self.named(name)
        return setting.render(self[setting])

    def changed_texts(self) -> dict[str, str]:
        """Returns the texts from which `parse` makes these settings again."""
        return {setting.name: setting.render(value) for setting, value in self._changed.items()}


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
    description="How much memory all analytical queries of a node may take together; read when it starts.",
)

COLUMNS_MEMORY = Setting(
    name="sql.columns_memory",
    kind=INT,
    default=192 * 1024 * 1024,
    lower=1024 * 1024,
    upper=1 << 40,
    unit="bytes",
    description="How much of its tables a node keeps as columns in memory; read when it starts.",
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

DEFINITIONS: tuple[AnySetting, ...] = (
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
    RESULT_BYTES_MAX,
    VERSION,
    MAX_OFFSET,
    MAX_BYTES,
    MAX_ROWS,
    ATTEMPTS,
    WATCH_POLL_INTERVAL,
    LIVENESS_TTL,
    LIVENESS_HEARTBEAT,
    JOBS_ADOPT_INTERVAL,
    JOBS_RETENTION,
    LEASE_POLL_INTERVAL,
    LEASE_DURATION,
    LEASE_HOLDER_GRACE,
)
