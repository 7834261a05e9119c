"""The options of a changefeed: what its messages contain, and how it answers schema changes.

    CREATE CHANGEFEED ... WITH updated, resolved = '10s', schema_change_policy = 'nobackfill'

Names and values are read here, once, when the feed is created; the job keeps the result. Times are given by
the caller's function, because they are written as in AS OF SYSTEM TIME.

Walk: `sql.statements.jobs.feed_targets` calls `read_options`; `changefeed.table_events`,
`changefeed.messages` and `changefeed.table_stream` go by the result.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeVar

from tenure.base.errors import InvalidParameter
from tenure.base.setting_kinds import parse_duration, render_duration
from tenure.base.timestamp import MAX_AT, ZERO_AT, Timestamp
from tenure.kv.records import Record


class Envelope(Enum):
    WRAPPED = "wrapped"
    BARE = "bare"
    KEY_ONLY = "key_only"
    ROW = "row"
    DEBEZIUM = "debezium"


class Format(Enum):
    JSON = "json"
    PARQUET = "parquet"
    AVRO = "avro"


class InitialScan(Enum):
    YES = "yes"
    NO = "no"
    ONLY = "only"


class SchemaPolicy(Enum):
    BACKFILL = "backfill"
    """All rows once more, as the new schema shows them."""
    NOBACKFILL = "nobackfill"
    STOP = "stop"


class SchemaEvents(Enum):
    """Which schema changes the policy is about."""

    DEFAULT = "default"
    """Those that change what existing rows look like."""
    COLUMN_CHANGES = "column_changes"
    """Every column that comes or goes."""


RESOLVED_SECONDS = 1.0
"""How often `resolved` without an interval tells the resolved timestamp."""

INTERVAL_SECONDS_MIN = 0.05
"""Each resolved timestamp is a commit of the sink, and a checkpoint."""


PROTECT_SECONDS_MIN = 60.0
"""The protection moves every few seconds, and is looked at once a minute."""


class FeedOptions(Record, frozen=True):
    envelope: Envelope = Envelope.WRAPPED
    format: Format = Format.JSON
    updated: bool = False
    mvcc_timestamp: bool = False
    diff: bool = False
    key_in_value: bool = False
    topic_in_value: bool = False
    resolved_seconds: float | None = None
    """None: resolved timestamps are not told."""
    checkpoint_seconds: float | None = None
    """None: as the cluster's settings say."""
    initial_scan: InitialScan = InitialScan.YES
    cursor_at: Timestamp = ZERO_AT
    end_at: Timestamp = MAX_AT
    policy: SchemaPolicy = SchemaPolicy.BACKFILL
    events: SchemaEvents = SchemaEvents.DEFAULT
    protect_seconds: float | None = None
    """How old the last checkpoint may become before the feed ends; None: any age."""
    is_ordered: bool = False
    """Whole transactions, in the order of their commits."""
    ddl_events: bool = False
    """Consumers are told of every schema change; that a table has ended they are told in any case."""


def read_options(values: Mapping[str, str | None], time_of: Callable[[str], Timestamp]) -> FeedOptions:
    """The options by name; None is an option without a value. Raises InvalidParameter (22023)."""
    for name in values:
        if name not in _OPTIONS:
            raise InvalidParameter(f'option "{name}" is not one of a changefeed')
    cursor_at = time_of(_text(values, "cursor")) if "cursor" in values else ZERO_AT
    envelope = _choice(values, "envelope", Envelope, Envelope.WRAPPED)
    options = FeedOptions(
        envelope=envelope,
        format=_choice(values, "format", Format, Format.JSON),
        updated=_is_on(values, "updated"),
        mvcc_timestamp=_is_on(values, "mvcc_timestamp"),
        # Whether a row is new is part of Debezium's envelope.
        diff=_is_on(values, "diff") or envelope is Envelope.DEBEZIUM,
        key_in_value=_is_on(values, "key_in_value"),
        topic_in_value=_is_on(values, "topic_in_value"),
        resolved_seconds=_resolved_seconds(values),
        checkpoint_seconds=_seconds(values, "min_checkpoint_frequency"),
        initial_scan=_initial_scan(values, InitialScan.NO if cursor_at else InitialScan.YES),
        cursor_at=cursor_at,
        end_at=time_of(_text(values, "end_time")) if "end_time" in values else MAX_AT,
        policy=_choice(values, "schema_change_policy", SchemaPolicy, SchemaPolicy.BACKFILL),
        events=_choice(values, "schema_change_events", SchemaEvents, SchemaEvents.DEFAULT),
        protect_seconds=_seconds(values, "gc_protect_expires_after", PROTECT_SECONDS_MIN),
        is_ordered="ordering" in values and _is_transaction(_text(values, "ordering")),
        ddl_events=_is_on(values, "ddl_events"),
    )
    _check(options)
    return options


def _check(options: FeedOptions) -> None:
    if options.initial_scan is InitialScan.ONLY and options.end_at != MAX_AT:
        raise InvalidParameter('a feed with "initial_scan" = only ends by itself, and has no "end_time"')
    if options.diff and options.envelope in (Envelope.KEY_ONLY, Envelope.ROW):
        raise InvalidParameter(f'"diff" has no place in the envelope "{options.envelope.value}"')
    if options.format is not Format.JSON and options.envelope is not Envelope.WRAPPED:
        raise InvalidParameter(f'the format "{options.format.value}" has the envelope "wrapped" alone')


_OPTIONS = frozenset(
    {
        *("cursor", "ddl_events", "diff", "end_time", "envelope", "format", "gc_protect_expires_after"),
        *("initial_scan", "initial_scan_only"),
        *("key_in_value", "min_checkpoint_frequency", "mvcc_timestamp", "no_initial_scan", "ordering"),
        *("resolved", "schema_change_events", "schema_change_policy", "topic_in_value", "updated"),
    }
)

E = TypeVar("E", bound=Enum)


def _choice(values: Mapping[str, str | None], name: str, kind: type[E], default: E) -> E:
    if name not in values:
        return default
    text = _text(values, name).lower()
    for each in kind:
        if each.value == text:
            return each
    choices = ", ".join(str(each.value) for each in kind)
    raise InvalidParameter(f'"{text}" is no value of option "{name}"', hint=f"There are {choices}.")


def _initial_scan(values: Mapping[str, str | None], default: InitialScan) -> InitialScan:
    """Either by one option with a value, or by one of two without."""
    names = [each for each in ("initial_scan", "initial_scan_only", "no_initial_scan") if each in values]
    if len(names) > 1:
        raise InvalidParameter(f'options "{names[0]}" and "{names[1]}" exclude each other')
    if "initial_scan_only" in values:
        return InitialScan.ONLY
    if "no_initial_scan" in values:
        return InitialScan.NO
    if values.get("initial_scan", "") is None:
        return InitialScan.YES
    return _choice(values, "initial_scan", InitialScan, default)


def _is_on(values: Mapping[str, str | None], name: str) -> bool:
    if name not in values:
        return False
    text = (values[name] or "true").lower()
    if text not in ("true", "on", "1", "false", "off", "0"):
        raise InvalidParameter(f'option "{name}" is true or false')
    return text in ("true", "on", "1")


def _is_transaction(text: str) -> bool:
    if text.lower() not in ("key", "transaction"):
        raise InvalidParameter(
            f'"{text}" is no value of option "ordering"', hint="There are key, transaction."
        )
    return text.lower() == "transaction"


def _resolved_seconds(values: Mapping[str, str | None]) -> float | None:
    if "resolved" in values and values["resolved"] is None:
        return RESOLVED_SECONDS
    return _seconds(values, "resolved")


def _seconds(
    values: Mapping[str, str | None], name: str, least: float = INTERVAL_SECONDS_MIN
) -> float | None:
    if name not in values:
        return None
    try:
        seconds = parse_duration(_text(values, name))
    except ValueError as error:
        raise InvalidParameter(f'option "{name}" is a time such as 10s or 500ms') from error
    if seconds < least:
        raise InvalidParameter(f'option "{name}" is at least {render_duration(least)}')
    return seconds


def _text(values: Mapping[str, str | None], name: str) -> str:
    text = values[name]
    if text is None or not text.strip():
        raise InvalidParameter(f'option "{name}" needs a value')
    return text
