"""Nodes that run a changefeed are killed: its files rebuild the table at every resolved timestamp.

Walk: `__main__` and `test_sql_smoke` call `feed_kill` with a `Run`; `webhook_kills` compares in the same way.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from tenure.base.timestamp import parse
from tests.faults.harness import Result, Run, wait_for
from tests.faults.sql_nodes import SqlNodes
from tests.unit.changefeed.feeding import Rebuilt

NODES = ("n0", "n1")
KEYS = 40
STATEMENTS = 150
"""Between two kills."""

CATCH_UP_SECONDS = 60.0


def feed_kill(run: Run) -> Result:
    """Nothing is lost, nothing is there twice, and no resolved timestamp lies."""
    result, kills, until = Result(), 0, time.monotonic() + run.seconds
    with TemporaryDirectory() as files, SqlNodes(run, "feed_kill", more=("--files", files)) as nodes:
        nodes.start(*NODES)
        nodes.execute("n0", "CREATE TABLE t (k int PRIMARY KEY, v int)")
        ((job,),) = nodes.execute("n0", "CREATE CHANGEFEED FOR t INTO 'f' WITH updated, resolved = '50ms'")
        batches = Batches(Path(files) / "f", job)
        while not kills or time.monotonic() < until:
            killed = NODES[kills % 2]
            load(nodes, NODES[(kills + 1) % 2], nodes.rng)
            nodes.kill(killed)
            kills += 1
            load(nodes, NODES[kills % 2], nodes.rng)
            nodes.start(killed)
        ((now,),) = nodes.execute("n0", "SELECT cluster_logical_timestamp()::text")
        result.require(
            wait_for(lambda: batches.resolved_at() >= parse(now), CATCH_UP_SECONDS), "the feed is behind"
        )
        result.violations += batches.wrong(nodes)
        nodes.execute("n0", f"CANCEL JOB {job} AND WAIT")
        nodes.stop(result)
    result.counts |= {"kills": kills, "messages": batches.messages, "comparisons": batches.comparisons}
    return result


def load(nodes: SqlNodes, name: str, rng: random.Random) -> None:
    with nodes.connect(name) as client:
        for number in range(STATEMENTS):
            try:
                client.execute(_statement(rng, number).encode())
            except psycopg.errors.DatabaseError:
                continue  # a column is there already, or is not


def _statement(rng: random.Random, number: int) -> str:
    chance, key, column = rng.random(), rng.randrange(KEYS), f"c{rng.randrange(3)}"
    if chance < 0.85:
        return f"UPSERT INTO t (k, v) VALUES ({key}, {number})"
    if chance < 0.94:
        return f"DELETE FROM t WHERE k = {key}"
    if chance < 0.97:
        return f"ALTER TABLE t ADD COLUMN {column} int DEFAULT {number}"
    return "TRUNCATE t" if chance > 0.995 else f"ALTER TABLE t DROP COLUMN {column}"


class Batches:
    """What a reader of the files finds."""

    def __init__(self, directory: Path, job: int) -> None:
        self._directory = directory
        self._job = job
        self.messages = self.comparisons = 0

    def _manifests(self) -> Iterator[dict[str, Any]]:
        for path in sorted((self._directory / str(self._job)).glob("*.json")):
            yield json.loads(path.read_text())

    def resolved_at(self) -> int:
        return max((parse(each["resolved"]) for each in self._manifests() if each["resolved"]), default=0)

    def wrong(self, nodes: SqlNodes) -> list[str]:
        rebuilt, found = Rebuilt(), set()
        with nodes.connect("n0") as client:
            for manifest in self._manifests():
                for file in manifest["files"]:
                    for line in (self._directory / file["name"]).read_text().splitlines():
                        rebuilt.take(json.loads(line))
                        self.messages += 1
                        if line in found:
                            return [f"batch {manifest['batch']} repeats {line}"]
                        found.add(line)
                if manifest["resolved"] and self._differs(client, rebuilt, manifest["resolved"]):
                    return [f"the table differs at batch {manifest['batch']}"]
        return []

    def _differs(self, client: "psycopg.Connection[Any]", rebuilt: Rebuilt, resolved: str) -> bool:
        rebuilt.resolve(parse(resolved))
        self.comparisons += 1
        return differs(client, rebuilt, resolved)


def differs(client: "psycopg.Connection[Any]", rebuilt: Rebuilt, at: str) -> bool:
    """Whether the table is another one at that time."""
    cursor = client.execute(f"SELECT * FROM t AS OF SYSTEM TIME '{at}'".encode())
    columns = [each.name for each in cursor.description or ()]
    rows = rebuilt.at(parse(at)).values()
    return sorted(map(str, cursor.fetchall())) != sorted(
        str(tuple(row.get(each) for each in columns)) for _, row in rows
    )
