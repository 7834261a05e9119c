"""Sinks of every kind, and what a consumer has of them.

The feed is a fixed one: message n has timestamp n and a key out of three. A position with n rows stands for
the messages 1 to n, and is resolved at n.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from tenure.base.timestamp import parse
from tenure.changefeed.messages import Message
from tenure.changefeed.options import Envelope
from tenure.changefeed.records import FeedPosition, TablePosition
from tenure.changefeed.sinks.files import FileSink
from tenure.changefeed.sinks.sink import Sink
from tenure.storage.locations import Locations

JOB = 42
KEYS = 3
START = FeedPosition((TablePosition(7, 0),))


def message(number: int, topic: str = "t", *, note: str = "") -> Message:
    key = f"[{number % KEYS}]"
    value = {"after": {"n": number, "note": note}, "key": json.loads(key), "topic": topic}
    return Message(topic, key, json.dumps(value), number)


def position(rows: int, batch: int = 0) -> FeedPosition:
    return FeedPosition((TablePosition(7, rows),), batch=batch, rows=rows)


class Delivery(NamedTuple):
    """What a consumer has, in the order it came."""

    run: int
    number: int
    is_resolved: bool = False


class Rig(Protocol):
    delivers_once: bool
    """Whether a message is never there twice."""

    def open(self, run: int) -> Sink: ...

    def deliveries(self) -> Sequence[Delivery]: ...

    def close(self) -> None: ...


class FileRig:
    delivers_once = True

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "files"
        self._locations = Locations(str(self._directory))
        self._locations.make_directory()

    def open(self, run: int) -> Sink:
        return FileSink(self._locations.resolve("feed"), job=JOB, run=run, envelope=Envelope.WRAPPED)

    def deliveries(self) -> Sequence[Delivery]:
        return list(self._read())

    def _read(self) -> Iterator[Delivery]:
        for path in sorted((self._directory / "feed" / str(JOB)).glob("*.json")):
            manifest, run = json.loads(path.read_text()), 0
            for file in manifest["files"]:
                run = int(file["name"].partition("-r")[2].partition("-")[0])
                for line in (self._directory / "feed" / file["name"]).read_text().splitlines():
                    yield Delivery(run, json.loads(line)["after"]["n"])
            if manifest["resolved"] is not None:
                yield Delivery(run, parse(manifest["resolved"]), is_resolved=True)

    def close(self) -> None:
        pass
