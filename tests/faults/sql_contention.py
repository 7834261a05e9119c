"""Many clients of two nodes at the same few rows, as applications go about it: none of them tries again.

    workers    take jobs from one table with SKIP LOCKED: each job is done once, and hardly anybody fails
    writers    add lines to orders that others update, delete and make anew: no line is ever without its order

Walk: `__main__` and `test_sql_smoke` call `sql_contention` with a `Run`.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg

from tests.faults.harness import Result, Run
from tests.faults.sql_nodes import SqlNodes

NAMES = ("n0", "n1")
WORKERS = WRITERS = 4
JOBS_PER_SECOND = 20
ORDERS = 5
FAILED_MAX = 0.02
"""Of the workers' transactions: a lock may be lost where a node is thought dead."""

LOOK_SECONDS = 0.05
SCHEMA = (
    "CREATE TABLE jobs (id int PRIMARY KEY, state text)",
    "CREATE INDEX ON jobs (state)",
    "CREATE TABLE done (job int, worker int)",
    "CREATE TABLE orders (id int PRIMARY KEY, code int UNIQUE, total int)",
    "CREATE TABLE lines (id bigserial PRIMARY KEY, order_id int REFERENCES orders,"
    " code int REFERENCES orders (code) ON DELETE SET NULL)",
)
TAKE = "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
STRAY = (
    "SELECT count(*) FROM lines WHERE NOT EXISTS (SELECT FROM orders WHERE orders.id = order_id)"
    " OR (code IS NOT NULL AND NOT EXISTS (SELECT FROM orders WHERE orders.code = lines.code))"
)


def sql_contention(run: Run) -> Result:
    result = Result()
    jobs = max(20, round(run.seconds * JOBS_PER_SECOND))
    with SqlNodes(run, "sql_contention") as nodes:
        nodes.start(*NAMES)
        nodes.execute("n0", *SCHEMA, f"INSERT INTO jobs SELECT n, 'new' FROM generate_series(1, {jobs}) n")
        contenders = _Contenders(nodes, run)
        contenders.run()
        result.violations += contenders.violations
        counts = contenders.counts
        failed = sum(count for (who, state), count in counts.items() if who == "worker" and state)
        result.require(failed <= FAILED_MAX * jobs + 1, f"of {jobs} jobs, {failed} tries failed: {counts}")
        result.require(counts["writer", ""] > 0, f"nobody wrote anything: {counts}")
        done = nodes.execute("n1", "SELECT job FROM done ORDER BY job")
        result.require(done == [(job,) for job in range(1, jobs + 1)], f"{jobs} jobs: done {done[:20]}")
        result.require(nodes.execute("n1", STRAY) == [(0,)], "lines without their orders at the end")
        nodes.stop(result)
    result.counts |= {f"{who} {state or 'well'}": count for (who, state), count in sorted(counts.items())}
    return result


class _Contenders:
    def __init__(self, nodes: SqlNodes, run: Run) -> None:
        self._nodes = nodes
        self._until = time.monotonic() + run.seconds
        self._seed = run.seed
        self.counts: Counter[tuple[str, str]] = Counter()
        self.violations: list[str] = []

    def run(self) -> None:
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(WORKERS)]
        threads += [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]
        threads.append(threading.Thread(target=self._look))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, number: int) -> None:
        def take(client: Any) -> bool:
            found = client.execute(TAKE).fetchone()
            if found is not None:
                client.execute("UPDATE jobs SET state = 'done' WHERE id = %s", found)
                client.execute("INSERT INTO done VALUES (%s, %s)", (*found, number))
            return found is not None

        with self._nodes.connect(NAMES[number % 2]) as client:
            while self._try("worker", client, take):
                pass

    def _write(self, number: int) -> None:
        chance = random.Random(self._seed + number)
        with self._nodes.connect(NAMES[number % 2]) as client:
            while time.monotonic() < self._until:
                self._try("writer", client, lambda client: _write_some(client, chance))

    def _try(self, who: str, client: Any, work: Callable[[Any], bool]) -> bool:
        """False if there was nothing to do."""
        try:
            client.execute("BEGIN")
            has_worked = work(client)
            client.execute("COMMIT")
            self.counts[who, ""] += has_worked
            return has_worked
        except psycopg.Error as error:
            self.counts[who, error.sqlstate or type(error).__name__] += 1
            client.rollback()
            return True

    def _look(self) -> None:
        with self._nodes.connect("n1") as client:
            while time.monotonic() < self._until:
                with suppress(psycopg.errors.SerializationFailure):
                    found = client.execute(STRAY).fetchone()
                    if found != (0,):
                        self.violations.append(f"lines without their orders: {found}")
                time.sleep(LOOK_SECONDS)


def _write_some(client: Any, chance: random.Random) -> bool:
    for statement, given in _statements(chance):
        client.execute(statement, given)
    return True


def _statements(chance: random.Random) -> Iterator[tuple[str, tuple[int, ...]]]:
    order = chance.randrange(ORDERS)
    match chance.randrange(8):
        case 0:
            if chance.random() < 0.5:
                yield "DELETE FROM lines WHERE order_id = %s", (order,)
            yield "DELETE FROM orders WHERE id = %s", (order,)
        case 1 | 2:
            yield "INSERT INTO orders VALUES (%s, %s, 0) ON CONFLICT DO NOTHING", (order, order + 100)
        case 3:
            yield "UPDATE orders SET total = total + 1 WHERE id = %s", (order,)
        case _:
            yield "INSERT INTO lines (order_id, code) VALUES (%s, %s)", (order, order + 100)
            yield "UPDATE orders SET total = total + 1 WHERE id = %s", (chance.randrange(ORDERS),)
