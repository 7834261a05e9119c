"""Nodes with a changefeed to Kafka are killed: its partitions rebuild the table at every resolved timestamp.

Walk: `__main__` and `test_sql_smoke` call `kafka_kill` with a `Run`.
"""

import json
import time
from collections.abc import Sequence

from tenure.base.timestamp import parse
from tests.faults.feed_kills import CATCH_UP_SECONDS, NODES, differs, load
from tests.faults.harness import Result, Run, wait_for
from tests.faults.sql_nodes import SqlNodes
from tests.kafka_cluster import KafkaCluster, KafkaRecord
from tests.unit.changefeed.feeding import Rebuilt

TOPIC = "defaultdb.public.t"


def kafka_kill(run: Run) -> Result:
    """Nothing is lost, no resolved timestamp lies, and a former run sends nothing after its successor."""
    result, kills, until = Result(), 0, time.monotonic() + run.seconds
    cluster = KafkaCluster(brokers=3)
    with SqlNodes(run, "kafka_kill") as nodes:
        nodes.start(*NODES)
        nodes.execute("n0", f"SET CLUSTER SETTING changefeed.kafka.brokers = '{', '.join(cluster.brokers)}'")
        nodes.execute("n0", "CREATE TABLE t (k int PRIMARY KEY, v int)")
        options = "updated, key_in_value, resolved = '50ms'"
        ((job,),) = nodes.execute("n0", f"CREATE CHANGEFEED FOR t INTO '{cluster.url()}' WITH {options}")
        while not kills or time.monotonic() < until:
            killed = NODES[kills % 2]
            load(nodes, NODES[(kills + 1) % 2], nodes.rng)
            nodes.kill(killed)
            kills += 1
            load(nodes, NODES[kills % 2], nodes.rng)
            nodes.start(killed)
        ((now,),) = nodes.execute("n0", "SELECT cluster_logical_timestamp()::text")
        result.require(
            wait_for(lambda: Partitions(cluster).resolved_at >= parse(now), CATCH_UP_SECONDS),
            "the feed is behind",
        )
        nodes.execute("n0", f"CANCEL JOB {job} AND WAIT")
        partitions = Partitions(cluster)
        result.violations += partitions.wrong(nodes)
        nodes.stop(result)
    cluster.close()
    runs = len({each.headers["tenure-run"] for each in partitions.records})
    result.counts |= {"kills": kills, "runs": runs, "records": len(partitions.records)}
    return result


class Partitions:
    """What a consumer finds in the topic."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.records = cluster.records(TOPIC)
        numbers = sorted({each.partition for each in self.records})
        self._by_number = [[each for each in self.records if each.partition == number] for number in numbers]

    @property
    def resolved_at(self) -> int:
        """All partitions are complete up to here."""
        return min((max(map(parse, _resolved(each)), default=0) for each in self._by_number), default=0)

    def wrong(self, nodes: SqlNodes) -> list[str]:
        for records in self._by_number:
            if found := _wrong_order(records):
                return [found]
        rebuilt = Rebuilt()
        for record in self.records:
            if record.key is not None:
                rebuilt.take(json.loads(record.value or b"null"))
        with nodes.connect("n0") as client:
            for text in sorted({each for records in self._by_number for each in _resolved(records)}):
                if parse(text) <= self.resolved_at and differs(client, rebuilt, text):
                    return [f"the table differs at {text}"]
        return []


def _resolved(records: Sequence[KafkaRecord]) -> list[str]:
    return [json.loads(each.value or b"null")["resolved"] for each in records if each.key is None]


def _wrong_order(records: Sequence[KafkaRecord]) -> str:
    """What is wrong in one partition."""
    resolved_at = newest_run = 0
    newest: dict[bytes, int] = {}
    there: set[bytes | None] = set()
    for record in records:
        if int(record.headers["tenure-run"]) < newest_run:
            return "a former run has sent after its successor"
        newest_run = int(record.headers["tenure-run"])
        value = json.loads(record.value or b"null")
        if record.key is None:
            resolved_at = max(resolved_at, parse(value["resolved"]))
        elif record.value not in there:
            at = parse(value["updated"])
            if at <= resolved_at:
                return f"{value} comes after it was resolved"
            if at < newest.get(record.key, 0):
                return f"{value} comes after a later change of its key"
            newest[record.key] = at
            there.add(record.value)
    return ""
