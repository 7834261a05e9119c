"""Messages: changes as JSON, in the envelope that was asked for. Everything here is pure.

    envelope   key    value of a row                               value of a deletion
    wrapped    [1]    {"after": {"a": 1, "b": 2}}                  {"after": null}
    bare       [1]    {"a": 1, "b": 2, "__tenure__": {...}}        {"__tenure__": {"deleted": true, ...}}
    row        [1]    {"a": 1, "b": 2}                             null
    key_only   [1]    none                                         none
    debezium   {"a": 1}   see `changefeed.debezium`

`updated` and `mvcc_timestamp` tell when: the time of the change, which for rows of a scan is the time of the
scan. `diff` adds `before`. `key_in_value` adds the key, `topic_in_value` the topic. Wrapped messages have
these beside `after`, bare ones inside of `__tenure__`. Members are as in PostgreSQL's row_to_json; times are
in UTC.

A consumer without a place for keys (a file) gets `line`: the value with its key in it, or a pair of both.

Walk: `changefeed.feed` -> `Encoder.message` for each change; sinks take `Message`s.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import NamedTuple

from tenure.base.timestamp import Timestamp, to_text
from tenure.changefeed.debezium import debezium_value
from tenure.changefeed.options import Envelope, FeedOptions, Format
from tenure.changefeed.version_rows import MessageColumn, RowChange, Values, VersionRows
from tenure.expr.functions.json_making import json_text_of
from tenure.expr.types.datatype import Datum
from tenure.expr.types.json_values import quoted

METADATA = "__tenure__"
ENCODINGS_MAX = 64
"""Compiled versions that are kept: more than a feed meets at a time."""


class Message(NamedTuple):
    topic: str
    """The table's name when the feed was created."""
    key: str
    """A JSON array."""
    value: str | None
    """JSON; None where the envelope has none."""
    at: Timestamp
    change: RowChange | None = None
    """The change itself instead of key and value, for formats that are no text."""
    is_deletion: bool = False


def resolved_text(at: Timestamp) -> str:
    return f'{{"resolved":"{to_text(at)}"}}'


class Encoder:
    """Encodes the changes of a feed; compiles each version of a table once."""

    def __init__(self, options: FeedOptions) -> None:
        self._options = options
        self._encodings: dict[int, _Encoding] = {}

    def message(self, topic: str, change: RowChange) -> Message:
        if self._options.format is not Format.JSON:
            return Message(topic, "", None, change.at, change)
        encoding = self._encoding(change.rows)
        if self._options.envelope is Envelope.DEBEZIUM:
            return self._debezium(topic, encoding, change)
        key = encoding.key(change.key)
        if self._options.envelope is Envelope.KEY_ONLY:
            return Message(topic, key, None, change.at)
        return Message(topic, key, self._value(topic, encoding, key, change), change.at)

    def _debezium(self, topic: str, encoding: "_Encoding", change: RowChange) -> Message:
        after = "null" if change.after is None else f"{{{encoding.members(change.after)}}}"
        value = debezium_value(topic, change, before=self._before(change), after=after)
        key = encoding.key_object(change.key)
        return Message(topic, key, value, change.at, is_deletion=change.after is None)

    def _before(self, change: RowChange) -> str:
        if change.before is None or change.before_rows is None:
            return "null"
        return f"{{{self._encoding(change.before_rows).members(change.before)}}}"

    def texts(self, change: RowChange) -> tuple[str, str | None, str | None]:
        """The key, the row before and the row after, as JSON."""
        encoding, before, after = self._encoding(change.rows), None, None
        if change.before is not None and change.before_rows is not None:
            before = f"{{{self._encoding(change.before_rows).members(change.before)}}}"
        if change.after is not None:
            after = f"{{{encoding.members(change.after)}}}"
        return encoding.key(change.key), before, after

    def _value(self, topic: str, encoding: "_Encoding", key: str, change: RowChange) -> str:
        options = self._options
        members = None if change.after is None else encoding.members(change.after)
        row = "null" if members is None else f"{{{members}}}"
        if options.envelope is Envelope.ROW:
            return row
        beside = self._metadata(topic, key, change)
        if options.envelope is Envelope.WRAPPED:
            return "{" + ",".join([f'"after":{row}', *beside]) + "}"
        if members is None:
            beside.insert(0, '"deleted":true')
        metadata = [f'"{METADATA}":{{{",".join(beside)}}}'] if beside else []
        return "{" + ",".join([members, *metadata] if members else metadata) + "}"

    def _metadata(self, topic: str, key: str, change: RowChange) -> list[str]:
        options, at = self._options, to_text(change.at)
        beside = []
        if options.diff:
            beside.append(f'"before":{self._before(change)}')
        if options.key_in_value:
            beside.append(f'"key":{key}')
        if options.topic_in_value:
            beside.append(f'"topic":{quoted(topic)}')
        if options.updated:
            beside.append(f'"updated":"{at}"')
        if options.mvcc_timestamp:
            beside.append(f'"mvcc_timestamp":"{at}"')
        return beside

    def _encoding(self, rows: VersionRows) -> "_Encoding":
        encoding = self._encodings.get(id(rows))
        if encoding is None or encoding.rows is not rows:
            if len(self._encodings) >= ENCODINGS_MAX:
                self._encodings.clear()
            encoding = self._encodings[id(rows)] = _Encoding(rows)
        return encoding


Write = Callable[[Datum, tzinfo], str]


class _Encoding:
    def __init__(self, rows: VersionRows) -> None:
        self.rows = rows
        self._key = _writers(rows.key_columns)
        self._members = [
            (f"{quoted(column.name)}:", write)
            for column, write in zip(rows.columns, _writers(rows.columns), strict=True)
        ]

    def key(self, values: Values) -> str:
        return (
            "[" + ",".join([write(value, UTC) for write, value in zip(self._key, values, strict=True)]) + "]"
        )

    def key_object(self, values: Values) -> str:
        pairs = zip(self.rows.key_columns, self._key, values, strict=True)
        return (
            "{" + ",".join([f"{quoted(each.name)}:{write(value, UTC)}" for each, write, value in pairs]) + "}"
        )

    def members(self, values: Values) -> str:
        """The members of the row's object; hidden key columns stand behind the others, and are left out."""
        pairs = zip(self._members, values, strict=False)
        return ",".join([name + write(value, UTC) for (name, write), value in pairs])


def _writers(columns: Sequence[MessageColumn]) -> list[Write]:
    return [json_text_of(column.type) for column in columns]


def line(message: Message, options: FeedOptions) -> str:
    """A message for a consumer without a place for keys. All but `row` and `key_only` contain their key."""
    if options.envelope in (Envelope.WRAPPED, Envelope.BARE, Envelope.DEBEZIUM):
        assert message.value is not None
        return message.value
    value = "" if message.value is None else f',"value":{message.value}'
    topic = f',"topic":{quoted(message.topic)}' if options.topic_in_value else ""
    return f'{{"key":{message.key}{topic}{value}}}'
