"""Sinks of every kind, and what a consumer has of them.

The feed is a fixed one: message n has timestamp n and a key out of three. A position with n rows stands for
the messages 1 to n, and is resolved at n.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, Settings
from tenure.base.timestamp import parse
from tenure.changefeed.messages import Message
from tenure.changefeed.options import FeedOptions
from tenure.changefeed.records import FeedPosition, TablePosition
from tenure.changefeed.sinks.destinations import destination_of
from tenure.changefeed.sinks.sink import Sink, SinkRun
from tenure.storage.locations import Locations
from tests.kafka_cluster import KafkaCluster
from tests.webhook_server import WebhookServer

JOB = 42
KEYS = 3
START = FeedPosition((TablePosition(7, 0),))
OPTIONS = FeedOptions(key_in_value=True, topic_in_value=True, resolved_seconds=1.0)
SEND_SECONDS = 20.0
LOOPBACK = {
    "changefeed.webhook.networks": "127.0.0.0/8, ::1/128",
    "changefeed.webhook.ports": "1-65535",
    "changefeed.webhook.http": "on",
}


def settings_with(texts: dict[str, str]) -> Settings:
    settings = Settings(DEFINITIONS)
    for name, text in texts.items():
        settings = settings.with_text(name, text)
    return settings


def sink_run(run: int, options: FeedOptions = OPTIONS, **others: Any) -> SinkRun:
    """A run that may always send, to loopback too."""
    env, settings = SystemEnv(), settings_with(LOOPBACK)
    always = SinkRun(JOB, run, options, ("t",), env, lambda: settings, within(SEND_SECONDS), env.sleep)
    return always._replace(**others)


def within(seconds: float) -> Callable[[], float]:
    """Sends may start, and take so long."""
    return lambda: SystemEnv().monotonic() + seconds


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
    partition: int = 0
    """There is an order in each of them."""


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
        return destination_of("feed", self._locations, settings_with({})).open(sink_run(run))

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


class WebhookRig:
    delivers_once = False

    def __init__(self, directory: Path) -> None:
        self.server = WebhookServer(directory)

    def open(self, run: int) -> Sink:
        text = self.server.url()
        return destination_of(text, Locations(None), settings_with(LOOPBACK)).open(sink_run(run))

    def deliveries(self) -> Sequence[Delivery]:
        return list(self._read())

    def _read(self) -> Iterator[Delivery]:
        for request in self.server.requests:
            run, value = int(request.headers["Tenure-Run"]), request.value
            if "resolved" in value:
                yield Delivery(run, parse(value["resolved"]), is_resolved=True)
            else:
                assert len(value["payload"]) == value["length"]
                yield from (Delivery(run, each["after"]["n"]) for each in value["payload"])

    def close(self) -> None:
        self.server.close()


class KafkaRig:
    delivers_once = False

    def __init__(self, _: Path) -> None:
        self.cluster = KafkaCluster()

    def open(self, run: int) -> Sink:
        settings = settings_with({"changefeed.kafka.brokers": "*"})
        return destination_of(self.cluster.url(), Locations(None), settings).open(sink_run(run))

    def deliveries(self) -> Sequence[Delivery]:
        return list(self._read())

    def _read(self) -> Iterator[Delivery]:
        for record in self.cluster.records("t"):
            run, value = int(record.headers["tenure-run"]), json.loads(record.value or b"null")
            if record.key is None:
                yield Delivery(run, parse(value["resolved"]), True, record.partition)
            else:
                yield Delivery(run, value["after"]["n"], False, record.partition)

    def close(self) -> None:
        self.cluster.close()
