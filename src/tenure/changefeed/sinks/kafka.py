"""Kafka: messages to topics, by librdkafka's idempotent producer.

    topic        the table's full name
    partition    by the key's hash, as Java's clients compute it: a key's changes are in one, in order
    resolved     {"resolved": "..."} without a key, to every partition of every topic of the feed
    headers      tenure-job, tenure-run

Each emit waits until the brokers have acknowledged all its messages. So no later message is sent before one
that failed, and memory holds one step of the feed. What is not acknowledged in time is taken out of the
queue; in one partition that is an end of the sequence, never a gap. Then all messages of the emit are sent
again, a few times; after that the run ends.

A process that stands still with messages in librdkafka's queue may send them when it goes on, although it has
lost the job: the header `tenure-run` tells such messages apart.

The library is an extra (`pip install tenure[kafka]`), known to this module alone and imported by the first
feed.

Walk: `changefeed.sinks.destinations` makes one per run; `changefeed.feed` calls `emit`.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenure.base.errors import InvalidParameter, TenureError, Unavailable
from tenure.base.retries import Pauses, Retries
from tenure.changefeed.messages import Message, resolved_text
from tenure.changefeed.records import FeedPosition
from tenure.changefeed.sinks.kafka_text import KafkaAddress, topic_of
from tenure.changefeed.sinks.sink import SinkRun
from tenure.kv.records import replace

if TYPE_CHECKING:
    from confluent_kafka import Producer

QUEUE_KILOBYTES = 64 << 10
"""What librdkafka may hold: more than a step of a feed, less than its own gigabyte."""
MESSAGE_BYTES_MAX = 16 << 20
"""Larger messages are refused here; a broker's own limit is lower, most often."""
POLL_SECONDS = 0.1
"""How often a wait for the brokers looks whether the run was told to stop."""
PARTITIONS_SECONDS = 10.0
"""How long the list of a topic's partitions is used."""
PATIENCE = 2
"""librdkafka gives a message up after so many times the send's time; before that it is taken back here."""

ATTEMPTS = 5
PAUSES = Pauses(0.1, 2.0)
"""A producer needs half a second for its first message, which may be longer than a send may take."""

TOO_SLOW = "the brokers did not acknowledge in time"

_log = logging.getLogger(__name__)


class KafkaSink:
    def __init__(self, address: KafkaAddress, run: SinkRun) -> None:
        self._library = load_kafka(Unavailable)  # another node may have it
        self._address = address
        self._run = run
        self._topics = dict.fromkeys(topic_of(address, each) for each in run.topics)
        self._producer: Producer | None = None
        self._partitions: dict[str, tuple[float, tuple[int, ...]]] = {}
        self._failure = ""
        self._headers: dict[str, str | bytes | None] = {
            "tenure-job": str(run.job),
            "tenure-run": str(run.run),
        }

    def resume(self, position: FeedPosition) -> FeedPosition:
        return position

    def emit(self, messages: Sequence[Message]) -> int:
        size = 0
        entries: list[dict[str, Any]] = []
        for message in messages:
            topic = topic_of(self._address, message.topic)
            self._topics[topic] = None
            key, value = message.key.encode(), _value(message)
            entries.append({"topic": topic, "key": key, "value": value})
            if message.is_deletion and value is not None:
                entries.append({"topic": topic, "key": key, "value": None})  # for Kafka's compaction
            size += len(key) + len(value or b"")
        self._send(entries)
        return size

    def commit(self, position: FeedPosition) -> FeedPosition:
        """Everything emitted was acknowledged."""
        if self._run.options.resolved_seconds is not None and position.resolved_at:
            text = resolved_text(position.resolved_at).encode()
            self._send(
                [
                    {"topic": topic, "partition": partition, "value": text}
                    for topic in self._topics
                    for partition in self._partitions_of(topic)
                ]
            )
        return replace(position, batch=position.batch + 1)

    def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            _empty(producer)

    def _send(self, entries: Sequence[dict[str, Any]]) -> None:
        retries = Retries(ATTEMPTS, PAUSES, self._run.env, sleep=self._run.sleep)
        while (failure := self._attempt(entries)) != "":
            if failure != TOO_SLOW:
                self.close()  # a producer that has failed may be of no use any more
            shown = self._address.shown
            retries.failed(Unavailable(f'sink "{shown}" has not taken the messages: {failure}'))
            retries.pause()

    def _attempt(self, entries: Sequence[dict[str, Any]]) -> str:
        """Returns why it failed; nothing is left in the queue then."""
        producer = self._opened()
        deadline = self._run.begin_send()
        self._failure = ""
        try:
            for entry in entries:
                self._produce(producer, entry, deadline)
            while len(producer) and not self._failure:
                self._wait(producer, deadline)
        except self._library.KafkaException as error:
            self._failure = self._failure or error.args[0].name()
        failure = self._failure
        if failure:
            _empty(producer)
        return failure

    def _produce(self, producer: "Producer", entry: dict[str, Any], deadline: float) -> None:
        while not self._failure:
            try:
                producer.produce(**entry, headers=self._headers, on_delivery=self._delivered)
                return
            except BufferError:  # the queue is full: that is the back-pressure
                self._wait(producer, deadline)

    def _wait(self, producer: "Producer", deadline: float) -> None:
        """Until some messages are acknowledged."""
        seconds = deadline - self._run.env.monotonic()
        if seconds <= 0:
            self._failure = self._failure or TOO_SLOW
            return
        producer.poll(min(POLL_SECONDS, seconds))
        self._run.sleep(0.0)  # raises if the run was told to stop

    def _delivered(self, error: Any, _: object) -> None:
        if error is not None:
            self._failure = self._failure or error.name()

    def _partitions_of(self, topic: str) -> tuple[int, ...]:
        now = self._run.env.monotonic()
        asked, partitions = self._partitions.get(topic, (0.0, ()))
        if partitions and now - asked < PARTITIONS_SECONDS:
            return partitions
        try:
            found = self._opened().list_topics(topic, timeout=self._seconds()).topics[topic]
        except self._library.KafkaException as error:
            self.close()
            raise Unavailable(f'sink "{self._address.shown}" is away: {error.args[0].name()}') from None
        if found.error is not None:
            raise Unavailable(
                f'topic "{topic}" of "{self._address.shown}" is not there: {found.error.name()}'
            )
        self._partitions[topic] = now, tuple(sorted(found.partitions))
        return self._partitions[topic][1]

    def _opened(self) -> "Producer":
        if self._producer is None:
            self._producer = open_producer(self._library, self._address, self._seconds())
        return self._producer

    def _seconds(self) -> float:
        """How long a send that starts now may take."""
        return max(0.1, self._run.begin_send() - self._run.env.monotonic())


def _empty(producer: "Producer") -> None:
    """Takes back what was not sent, and forgets what was not acknowledged."""
    producer.purge()
    while len(producer):
        producer.poll(POLL_SECONDS)


def _value(message: Message) -> bytes | None:
    """A deletion that has no value is none: Kafka's compaction understands it."""
    return None if message.value is None or message.value == "null" else message.value.encode()


def load_kafka(refusal: type[TenureError]) -> Any:
    """The module; `refusal` is raised where it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        raise refusal(
            "changefeeds to Kafka need the library confluent-kafka",
            hint="Install it on every node: pip install 'tenure[kafka]'.",
        ) from None
    return confluent_kafka


def open_producer(library: Any, address: KafkaAddress, seconds: float) -> "Producer":
    """It connects when it has something to send. Raises InvalidParameter (22023)."""
    try:
        producer: Producer = library.Producer(_configuration(address, seconds), logger=_log)
    except (library.KafkaException, ValueError):
        raise InvalidParameter(
            f'the parameters of sink "{address.shown}" are not valid',
            hint="Is ca_cert a certificate, and does librdkafka have this sasl_mechanism?",
        ) from None
    return producer


def _configuration(address: KafkaAddress, seconds: float) -> dict[str, Any]:
    configuration: dict[str, Any] = {
        "bootstrap.servers": ",".join(address.brokers),
        "client.id": "tenure",
        "enable.idempotence": True,
        "message.timeout.ms": round(seconds * PATIENCE * 1000),
        "message.max.bytes": MESSAGE_BYTES_MAX,
        "queue.buffering.max.kbytes": QUEUE_KILOBYTES,
        "linger.ms": 0,
        "partitioner": "murmur2_random",
        "compression.type": address.compression,
        "log_level": 3,  # errors
        "security.protocol": "ssl" if address.has_tls else "plaintext",
    }
    if address.ca_pem:
        configuration["ssl.ca.pem"] = address.ca_pem
    if address.sasl_mechanism:
        configuration |= {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": address.sasl_mechanism,
            "sasl.username": address.sasl_user,
            "sasl.password": address.sasl_password,
        }
    return configuration
