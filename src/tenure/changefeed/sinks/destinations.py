"""Destinations: what the text after INTO stands for, who may use it, and the sink that sends there.

    feeds/orders, file:///..., s3://...     files          members of pg_write_server_files
    https://..., http://...                 a webhook      members of pg_create_subscription
    kafka://...                             topics         the same

A destination is checked whole before anything is sent or any credential is used, when the changefeed is
created and again when a run begins.

Walk: `changefeed.job` -> `destination_of`, for CREATE CHANGEFEED and for each run, which then calls `open`.
"""

from collections.abc import Sequence
from typing import Protocol

from tenure.base.errors import InvalidParameter, NotSupported
from tenure.base.feed_settings import KAFKA_BROKERS, SINK_TIMEOUT
from tenure.base.setting_values import Settings
from tenure.catalog.accounts.predefined_roles import CONNECT_ELSEWHERE, WRITE_FILES
from tenure.changefeed.options import FeedOptions, Format
from tenure.changefeed.sinks.checked_connection import checked_addresses
from tenure.changefeed.sinks.egress import EgressRules, rules_of
from tenure.changefeed.sinks.files import FileSink
from tenure.changefeed.sinks.kafka import KafkaSink, load_kafka, open_producer
from tenure.changefeed.sinks.kafka_text import KafkaAddress, check_brokers, parse_kafka, topic_of
from tenure.changefeed.sinks.sink import Sink, SinkRun
from tenure.changefeed.sinks.webhook import WebhookSink
from tenure.changefeed.sinks.webhook_text import WebhookAddress, parse_webhook
from tenure.kv.records import replace
from tenure.storage.locations import Location, Locations


class Destination(Protocol):
    role: str
    """The predefined role whose members may send there."""
    action: str
    """What they may do, as refusals call it."""
    is_secret: bool
    """Whether its text is sealed even if nothing in it looks like a secret."""
    shown: str
    """Its text without secrets."""

    def adapted(self, options: FeedOptions) -> FeedOptions:
        """The options of a feed to there."""
        ...

    def check(self, topics: Sequence[str]) -> None:
        """Raises if it cannot be a changefeed's with messages of these topics: asked when one is created."""
        ...

    def open(self, run: SinkRun) -> Sink: ...


def destination_of(text: str, locations: Locations, settings: Settings) -> Destination:
    scheme = text.partition("://")[0].strip().lower()
    if scheme in ("http", "https"):
        return WebhookDestination(parse_webhook(text), rules_of(settings))
    if scheme == "kafka":
        return KafkaDestination(parse_kafka(text), settings[KAFKA_BROKERS])
    return FileDestination(locations.resolve(text))


class FileDestination:
    role = WRITE_FILES
    action = "write a changefeed to files"
    is_secret = False

    def __init__(self, location: Location) -> None:
        self._location = location
        self.shown = location.shown

    def adapted(self, options: FeedOptions) -> FeedOptions:
        if options.format is Format.AVRO:
            from tenure.pipeline.writing.avro_changes import load_avro  # only then: it loads Arrow

            load_avro(NotSupported)
        # A file has no place for keys but the lines themselves.
        return replace(options, key_in_value=True)

    def check(self, topics: Sequence[str]) -> None:
        if self._location.has_wildcards:
            raise InvalidParameter(f'location "{self.shown}" has wildcards', hint="Name a directory.")

    def open(self, run: SinkRun) -> Sink:
        return FileSink(self._location, run)


class WebhookDestination:
    role = CONNECT_ELSEWHERE
    action = "send a changefeed to a webhook"
    is_secret = True

    def __init__(self, address: WebhookAddress, rules: EgressRules) -> None:
        self._address = address
        self._rules = rules
        self.shown = address.shown

    def adapted(self, options: FeedOptions) -> FeedOptions:
        _refuse_file_formats(options)
        return replace(options, key_in_value=True, topic_in_value=True)

    def check(self, topics: Sequence[str]) -> None:
        checked_addresses(self._address, self._rules)

    def open(self, run: SinkRun) -> Sink:
        return WebhookSink(self._address, run)


class KafkaDestination:
    role = CONNECT_ELSEWHERE
    action = "send a changefeed to Kafka"
    is_secret = True

    def __init__(self, address: KafkaAddress, allowed: str) -> None:
        check_brokers(address, allowed)
        self._address = address
        self.shown = address.shown

    def adapted(self, options: FeedOptions) -> FeedOptions:
        _refuse_file_formats(options)
        return options

    def check(self, topics: Sequence[str]) -> None:
        open_producer(load_kafka(NotSupported), self._address, SINK_TIMEOUT.default)
        for topic in topics:
            topic_of(self._address, topic)

    def open(self, run: SinkRun) -> Sink:
        return KafkaSink(self._address, run)


def _refuse_file_formats(options: FeedOptions) -> None:
    if options.format is not Format.JSON:
        raise InvalidParameter(f'the format "{options.format.value}" is for files')
