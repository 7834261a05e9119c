"""A Kafka cluster inside of this process: librdkafka's mock brokers, on loopback."""

from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

SECONDS = 20.0


class KafkaRecord(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, str]


class KafkaCluster:
    """Topics are there when they are named, with four partitions."""

    def __init__(self, *, brokers: int = 1) -> None:
        # The brokers live as long as this client, which is no other's.
        self._owner = Producer(
            {"bootstrap.servers": "mock", "test.mock.num.brokers": brokers, "log_level": 0}
        )
        found = self._owner.list_topics(timeout=SECONDS).brokers.values()
        self.brokers = tuple(f"{each.host}:{each.port}" for each in found)

    def url(self, **parameters: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in {"tls_enabled": "false", **parameters}.items())
        return f"kafka://{','.join(self.brokers)}?{query}"

    def records(self, topic: str) -> list[KafkaRecord]:
        """All of a topic, partition by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": ",".join(self.brokers),
                "group.id": "test",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "log_level": 0,
            }
        )
        partitions = consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found: list[KafkaRecord] = []
        ended: set[int | None] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(SECONDS)
            assert message is not None, "the brokers do not answer"
            if message.error() is not None:
                ended.add(message.partition())
                continue
            found.append(_record(message))
        consumer.close()
        return sorted(found, key=lambda each: each.partition)  # stable: each partition keeps its order

    def close(self) -> None:
        del self._owner


def _record(message: Any) -> KafkaRecord:
    headers = {name: value.decode() for name, value in message.headers() or ()}
    return KafkaRecord(message.partition(), message.key(), message.value(), headers)
