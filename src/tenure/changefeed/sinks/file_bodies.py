"""What a changefeed's file consists of: lines of JSON, or changes in columns.

    NdjsonBody     a line per message; schema changes in any format
    RowsBody       the changes themselves, written as Parquet or Avro: all of one version of their table,
                   because a file has one schema

Walk: `changefeed.sinks.files` -> `body_for`, then `add` per message and `content`.
"""

from collections.abc import Sequence
from typing import Protocol

from tenure.base.sizes import size_of_rows
from tenure.base.timestamp import to_text
from tenure.changefeed.messages import Message, line
from tenure.changefeed.options import FeedOptions, Format
from tenure.changefeed.version_rows import MessageColumn, RowChange, Values, VersionRows
from tenure.pipeline.writing.changes import ChangeStruct, ChangeTexts
from tenure.pipeline.writing.formats import OutColumn


class FileBody(Protocol):
    ending: str
    """Of the file's name."""
    rows: int
    size: int
    """About how much memory it takes."""

    def takes(self, message: Message) -> bool:
        """Whether the message can be in the same file as those before."""
        ...

    def add(self, message: Message) -> int:
        """Returns the bytes of the message."""
        ...

    def content(self) -> bytes: ...


def body_for(message: Message, options: FeedOptions) -> FileBody:
    if message.change is None:
        return NdjsonBody(options)
    return RowsBody(options, message.topic, message.change.rows)


class NdjsonBody:
    ending = "ndjson"

    def __init__(self, options: FeedOptions) -> None:
        self._options = options
        self._lines: list[bytes] = []
        self.rows = self.size = 0

    def takes(self, message: Message) -> bool:
        return message.change is None

    def add(self, message: Message) -> int:
        text = line(message, self._options).encode() + b"\n"
        self._lines.append(text)
        self.rows += 1
        self.size += len(text)
        return len(text)

    def content(self) -> bytes:
        return b"".join(self._lines)


class RowsBody:
    def __init__(self, options: FeedOptions, topic: str, version: VersionRows) -> None:
        self._options = options
        self._topic = topic
        self._version = version
        self._changes: list[RowChange] = []
        self.ending = options.format.value
        self.rows = self.size = 0

    def takes(self, message: Message) -> bool:
        return message.change is not None and message.change.rows is self._version

    def add(self, message: Message) -> int:
        change = message.change
        assert change is not None
        self._changes.append(change)
        size = size_of_rows([each for each in (change.key, change.after, change.before) if each is not None])
        self.rows += 1
        self.size += size
        return size

    def content(self) -> bytes:
        # Imported here: a node without such feeds need not have Arrow in memory.
        if self._options.format is Format.AVRO:
            from tenure.pipeline.writing.avro_changes import avro_changes

            return avro_changes(self._topic, self._structs(), self._texts())
        from tenure.pipeline.writing.change_rows import parquet_changes

        return parquet_changes(self._structs(), self._texts())

    def _structs(self) -> list[ChangeStruct]:
        changes, columns = self._changes, self._version.columns
        structs = [
            _struct("key", self._version.key_columns, [each.key for each in changes]),
            # Hidden key columns stand behind the others.
            _struct("after", columns, [each.after and each.after[: len(columns)] for each in changes]),
        ]
        if self._options.diff:
            structs.append(_struct("before", columns, [_before(each, columns) for each in changes]))
        return structs

    def _texts(self) -> list[ChangeTexts]:
        options, times = self._options, [to_text(each.at) for each in self._changes]
        texts = []
        if options.topic_in_value:
            texts.append(ChangeTexts("topic", [self._topic] * len(times)))
        if options.updated:
            texts.append(ChangeTexts("updated", times))
        if options.mvcc_timestamp:
            texts.append(ChangeTexts("mvcc_timestamp", times))
        return texts


def _struct(name: str, columns: Sequence[MessageColumn], rows: Sequence[Values | None]) -> ChangeStruct:
    return ChangeStruct(
        name,
        [OutColumn(each.name, each.type.ref) for each in columns],
        [each.type for each in columns],
        rows,
    )


def _before(change: RowChange, columns: Sequence[MessageColumn]) -> Values | None:
    """The row before, by the columns of now: those that it did not have are null."""
    if change.before is None or change.before_rows is None:
        return None
    values = dict(zip(change.before_rows.read_ids, change.before, strict=True))
    return tuple([values.get(each.id) for each in columns])
