"""Whole transactions in the order of their commits: `ordering = 'transaction'`.

    emit     messages are kept, in memory and then in sorted pieces on disk
    commit   all that is at or below the resolved timestamp R goes to the sink, sorted by time

A feed has several tables, and a catch-up comes by key: messages come in any order. Up to R all of them are
there, so they can be sorted, and everything that comes later is above R.

What is kept is lost with the process. So the position that is saved goes no further than R (`held_back`): a
table that is ahead starts at R again, and a scan at its beginning.

Invariant (transaction-order): a sink gets messages in the order of their timestamps, and those of one
timestamp together.

Walk: `changefeed.job` and `changefeed.client_stream` put an `OrderedSink` before the sink; the job saves
`held_back` positions.
"""

import heapq
import json
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import IO

from tenure.base.timestamp import Timestamp
from tenure.changefeed.messages import Message
from tenure.changefeed.records import FeedPosition, TablePosition
from tenure.changefeed.sinks.sink import Sink
from tenure.kv.records import replace

MEMORY_BYTES = 4 << 20
"""What is kept in memory; the rest is on disk."""

MESSAGE_BYTES = 200
"""What a message takes in memory besides its texts."""

EMIT_ROWS = 1_000
"""Messages that the sink gets at a time."""

_time = attrgetter("at")


class OrderedSink:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._kept: list[Message] = []
        self._kept_bytes = 0
        self._pieces: list[IO[bytes]] = []
        """Sorted, each from where it was read up to."""

    def resume(self, position: FeedPosition) -> FeedPosition:
        return self._sink.resume(position)

    def emit(self, messages: Sequence[Message]) -> int:
        size = sum(len(each.key) + len(each.value or "") for each in messages)
        self._kept += messages
        self._kept_bytes += size + MESSAGE_BYTES * len(messages)
        if self._kept_bytes > MEMORY_BYTES:
            self._spill()
        return size

    def commit(self, position: FeedPosition) -> FeedPosition:
        self.flush(position.resolved_at)
        return self._sink.commit(position)

    def flush(self, until_at: Timestamp) -> None:
        """Hands all messages up to a time to the sink."""
        sources = [_Piece(each, until_at) for each in self._pieces]
        self._kept.sort(key=_time)  # stable: messages of a key keep their order
        count = sum(each.at <= until_at for each in self._kept)
        due, self._kept = self._kept[:count], self._kept[count:]
        merged = heapq.merge(*sources, due, key=_time)
        while page := list(islice(merged, EMIT_ROWS)):
            self._sink.emit(page)
        self._kept_bytes = sum(_bytes(each) for each in self._kept)
        self._pieces = [each.file for each in sources if each.has_more]

    def close(self) -> None:
        for each in self._pieces:
            each.close()
        self._pieces, self._kept = [], []
        self._sink.close()

    def _spill(self) -> None:
        self._kept.sort(key=_time)
        # Open until all of it was handed on.
        file = tempfile.TemporaryFile(prefix="tenure-feed-")  # noqa: SIM115
        file.writelines(json.dumps(each).encode() + b"\n" for each in self._kept)
        file.seek(0)
        self._pieces.append(file)
        self._kept, self._kept_bytes = [], 0


class _Piece:
    """The messages of a file up to a time; the next one stays for the next time."""

    def __init__(self, file: IO[bytes], until_at: Timestamp) -> None:
        self.file = file
        self.has_more = False
        self._until_at = until_at

    def __iter__(self) -> Iterator[Message]:
        while (message := self._next()) is not None:
            if message.at > self._until_at:
                self._back()
                self.has_more = True
                return
            yield message
        self.file.close()

    def _next(self) -> Message | None:
        self._began = self.file.tell()
        line = self.file.readline()
        return Message(*json.loads(line)) if line else None

    def _back(self) -> None:
        self.file.seek(self._began)


def _bytes(message: Message) -> int:
    return len(message.key) + len(message.value or "") + MESSAGE_BYTES


def held_back(position: FeedPosition, began: Sequence[TablePosition]) -> FeedPosition:
    """The position as far as the sink has it, where it gets nothing above the resolved timestamp.

    `began` is where each of its tables began: none goes back before that.
    """
    at, pairs = position.resolved_at, zip(position.tables, began, strict=True)
    return replace(position, tables=tuple(_held_back(table, first, at) for table, first in pairs))


def _held_back(table: TablePosition, first: TablePosition, at: Timestamp) -> TablePosition:
    begun_at = first.frontier_at if first.scan is None else first.scan.at
    if table.frontier_at > at:
        return first if at < begun_at else replace(table, frontier_at=at, scan=None)
    if table.scan is None:
        return table
    return replace(table, scan=replace(table.scan, cursor=b""))
