"""Changefeeds to Kafka: topics, partitions, resolved timestamps, and who may have one."""

import json
import random
import sys
from collections.abc import Iterator

import pytest

from tenure.base.errors import InvalidParameter, NoPermission, Unavailable
from tenure.base.timestamp import parse
from tenure.changefeed.messages import Message
from tenure.changefeed.options import Envelope, FeedOptions
from tenure.changefeed.sinks import kafka
from tenure.changefeed.sinks.destinations import destination_of
from tenure.changefeed.sinks.kafka import KafkaSink
from tenure.changefeed.sinks.kafka_text import check_brokers, parse_kafka, topic_of
from tenure.storage.locations import Locations
from tests.contract.sink_rigs import OPTIONS, START, message, position, settings_with, sink_run, within
from tests.kafka_cluster import KafkaCluster, KafkaRecord
from tests.unit.changefeed.feeding import Feeding, Rebuilt
from tests.unit.changefeed.random_work import RandomWork

CANARY = "canary-7-of-a-secret"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "ATTEMPTS", 2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(brokers=3)
    yield cluster
    cluster.close()


@pytest.fixture
def brokers(feeding: Feeding, cluster: KafkaCluster) -> Iterator[None]:
    feeding.done(f"SET CLUSTER SETTING changefeed.kafka.brokers = '{', '.join(cluster.brokers)}'")
    yield
    feeding.done("RESET CLUSTER SETTING changefeed.kafka.brokers")


def check_partitions(feeding: Feeding, records: list[KafkaRecord]) -> int:
    """In each partition: order by key, and no resolved timestamp lies. Returns the least of the last ones."""
    of_key: dict[bytes, int] = {}
    last = []
    for partition in {each.partition for each in records}:
        resolved = 0
        newest: dict[bytes, int] = {}
        for record in (each for each in records if each.partition == partition):
            value = json.loads(record.value or b"null")
            if record.key is None:
                assert parse(value["resolved"]) >= resolved
                resolved = parse(value["resolved"])
                continue
            at = parse(value["updated"])
            assert at > resolved, "a change comes after it was resolved"
            assert at >= newest.get(record.key, 0), "a key's changes are out of order"
            newest[record.key] = at
            assert of_key.setdefault(record.key, partition) == partition, "a key is in two partitions"
        last.append(resolved)
    return min(last)


@pytest.mark.usefixtures("brokers")
def test_topics_rebuild_the_table(feeding: Feeding, cluster: KafkaCluster) -> None:
    rng = random.Random(3)
    work = RandomWork(feeding, rng)
    ((job,),) = feeding.rows(
        f"CREATE CHANGEFEED FOR t INTO '{cluster.url()}' WITH updated, resolved = '50ms', key_in_value"
    )
    for _ in range(20):
        work.step()
    ((end,),) = feeding.rows("SELECT cluster_logical_timestamp()")
    topic, until_at = f"defaultdb.{feeding.schema}.t", parse(str(end))
    while True:
        records = cluster.records(topic)
        if records and check_partitions(feeding, records) >= until_at:
            break
    feeding.done(f"CANCEL JOB {job} AND WAIT")
    assert len({each.partition for each in records if each.key is not None}) > 1
    rebuilt = Rebuilt()
    for record in records:
        if record.key is not None:
            value = json.loads(record.value or b"null")
            assert json.loads(record.key) == value["key"]
            rebuilt.take(value)
    theirs, columns = feeding.stored("t", until_at)
    rows = rebuilt.at(until_at).values()
    ours = [["" if row.get(each) is None else str(row[each]) for each in columns] for _, row in rows]
    assert sorted(ours) == theirs


@pytest.mark.usefixtures("brokers")
def test_resolved_timestamps_go_to_every_partition_of_topics_without_changes(
    feeding: Feeding, cluster: KafkaCluster
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    ((job,),) = feeding.rows(f"CREATE CHANGEFEED FOR t INTO '{cluster.url()}' WITH resolved = '50ms'")
    topic = f"defaultdb.{feeding.schema}.t"
    while len({each.partition for each in cluster.records(topic)}) < 4:
        pass
    feeding.done(f"CANCEL JOB {job} AND WAIT")
    assert all(each.key is None for each in cluster.records(topic))


def sink_to(
    cluster: KafkaCluster, options: FeedOptions = OPTIONS, *, seconds: float = 20.0, **parameters: str
) -> KafkaSink:
    run = sink_run(3, options, begin_send=within(seconds))
    return KafkaSink(parse_kafka(cluster.url(**parameters)), run)


def test_a_deletion_without_a_value_is_kafkas_tombstone(cluster: KafkaCluster) -> None:
    sink = sink_to(cluster, FeedOptions(Envelope.ROW), topic_name="tombstones")
    sink.emit(
        [Message("t", "[1]", '{"a":1}', 1), Message("t", "[1]", "null", 2), Message("t", "[1]", None, 3)]
    )
    sink.close()
    records = cluster.records("tombstones")
    assert [each.value for each in records] == [b'{"a":1}', None, None]
    assert records[0].headers == {"tenure-job": "42", "tenure-run": "3"}


def test_a_deletion_of_debeziums_envelope_is_followed_by_a_tombstone(cluster: KafkaCluster) -> None:
    sink = sink_to(cluster, FeedOptions(Envelope.DEBEZIUM), topic_name="debezium")
    sink.emit([Message("t", '{"a":1}', '{"op":"d"}', 1, is_deletion=True)])
    sink.close()
    assert [each.value for each in cluster.records("debezium")] == [b'{"op":"d"}', None]


def test_brokers_that_are_gone_end_the_run_and_leave_nothing_queued() -> None:
    gone = KafkaCluster()
    sink = sink_to(gone, seconds=1.0)
    assert sink.resume(START) == START
    sink.emit([message(1)])
    gone.close()
    with pytest.raises(Unavailable, match="has not taken"):
        sink.emit([message(2)])
    assert sink._producer is None or len(sink._producer) == 0
    with pytest.raises(Unavailable):
        sink.commit(position(2))
    sink.close()


def test_a_time_that_is_too_short_for_the_first_message_is_no_failure(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer goes on with what it needs before its first message, while the attempts fail."""
    monkeypatch.setattr(kafka, "ATTEMPTS", 1000)
    sink = sink_to(cluster, seconds=0.1, topic_name="hasty")
    sink.emit([message(1), message(2)])
    sink.close()
    numbers = [json.loads(each.value or b"null")["after"]["n"] for each in cluster.records("hasty")]
    assert {*numbers} == {1, 2}


def test_a_message_that_is_too_large_is_told(cluster: KafkaCluster) -> None:
    sink = sink_to(cluster)
    with pytest.raises(Unavailable, match="MSG_SIZE_TOO_LARGE"):
        sink.emit([message(1, note="x" * (17 << 20))])
    sink.close()


def test_without_the_library_the_statement_says_what_to_install(
    feeding: Feeding, cluster: KafkaCluster, brokers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    said = feeding.talk.say(f"CREATE CHANGEFEED FOR t INTO '{cluster.url()}'")
    assert (said.sqlstate, said.hint) == ("0A000", "Install it on every node: pip install 'tenure[kafka]'.")
    with pytest.raises(Unavailable, match="need the library"):
        sink_to(cluster)


@pytest.mark.invariant("S22-brokers")
@pytest.mark.setting("changefeed.kafka.brokers")
def test_brokers_are_those_of_the_list(feeding: Feeding, cluster: KafkaCluster) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    assert feeding.talk.say(f"CREATE CHANGEFEED FOR t INTO '{cluster.url()}'").sqlstate == "42501"
    address = parse_kafka("kafka://B1.test,b2.test:9093")
    check_brokers(address, "b1.test:9092, b2.test:9093")
    check_brokers(address, "*")
    for allowed in ("", "b1.test:9092", "b1.test:9093, b2.test:9092"):
        with pytest.raises(NoPermission):
            check_brokers(address, allowed)


@pytest.mark.usefixtures("brokers")
def test_kafka_needs_the_role_for_connections(feeding: Feeding, cluster: KafkaCluster) -> None:
    role = f"kafka_{feeding.schema}"
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done(f"CREATE ROLE {role}")
    feeding.done(f"GRANT USAGE ON SCHEMA {feeding.schema} TO {role}")
    feeding.done(f"GRANT CHANGEFEED ON t TO {role}")
    feeding.done(f"SET ROLE {role}")
    assert feeding.talk.say(f"CREATE CHANGEFEED FOR t INTO '{cluster.url()}'").sqlstate == "42501"
    feeding.done("RESET ROLE")


def test_the_password_is_shown_nowhere(feeding: Feeding) -> None:
    feeding.done("SET CLUSTER SETTING changefeed.kafka.brokers = '127.0.0.1:1'")
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    text = f"kafka://127.0.0.1:1?sasl_user={CANARY}&sasl_password={CANARY}"
    ((job,),) = feeding.rows(f"CREATE CHANGEFEED FOR t INTO '{text}'")
    feeding.done(f"PAUSE JOB {job}")
    shown = [
        repr(feeding.rows(query))
        for query in ("SHOW CHANGEFEED JOBS", "SHOW JOBS", "SELECT * FROM tenure_internal.sessions")
    ]
    node = feeding.node
    record = node.jobs.get(node.store.snapshot(), int(job or 0))
    assert record is not None and CANARY not in repr([*shown, record])
    assert "kafka://127.0.0.1:1" in shown[0]
    feeding.done(f"CANCEL JOB {job} AND WAIT")
    feeding.done("RESET CLUSTER SETTING changefeed.kafka.brokers")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "kafka://",
            "kafka://a b",
            "kafka://user@host",
            "kafka://host:0",
            "kafka://host:99999",
            "kafka://a,,b",
        ),
        *(
            "kafka://h?debug=all",
            "kafka://h?ssl.ca.location=/etc/passwd",
            "kafka://h?topic_name=a&topic_name=b",
        ),
        *("kafka://h?sasl_user=u", "kafka://h?sasl_user=u&sasl_password=p&tls_enabled=false"),
        *("kafka://h?sasl_mechanism=GSSAPI&sasl_user=u&sasl_password=p", "kafka://h?compression=rar"),
        *("kafka://h?ca_cert=%25", "kafka://h?tls_enabled=maybe", "kafka://h?topic_prefix=" + "x" * 300),
    ],
)
def test_addresses_with_anything_else_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        parse_kafka(text)


def test_a_certificate_that_is_none_is_refused() -> None:
    settings = settings_with({"changefeed.kafka.brokers": "*"})
    with pytest.raises(InvalidParameter):
        destination_of("kafka://h?ca_cert=bm9uc2Vuc2U%3D", Locations(None), settings).check(())


def test_any_name_of_a_table_makes_a_topic() -> None:
    address = parse_kafka("kafka://h?topic_prefix=x-")
    assert topic_of(address, 'db.s."a b/ö"') == "x-db.s._u0022_a_u0020_b_u002f__u00f6__u0022_"
    with pytest.raises(InvalidParameter, match="longer than 249"):
        topic_of(address, "t" * 250)
