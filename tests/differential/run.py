"""A run: one seed, many statements, both sides; what differs comes out as a script to run again.

Statements come by weight from all generators. The executors take turns: rows, DuckDB, and whichever the
planner would choose.

Walk: `test_differential` and `__main__` make the two sides (`both_sides`) and call `run`.
"""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import psycopg

from tenure.base.env import SystemEnv
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tests.differential import scripts, world
from tests.differential.batches import Batch, Batches
from tests.differential.comparison import Verdict, verdict
from tests.differential.mistakes import Mistakes
from tests.differential.queries import Queries
from tests.differential.shapes import Shapes
from tests.differential.sides import Answer, Side, Statement
from tests.differential.writes import Writes
from tests.postgres_server import Server

DATABASE = f"differential_{os.getpid()}"
"""The server is shared by all processes that run tests."""
EXECUTORS = ("rows", "duckdb", "auto")
ZONES = ("UTC", "Europe/Berlin", "America/New_York")
STATEMENTS_PER_SETTING = 10


@dataclass
class Difference:
    statement: Statement
    ours: Answer
    theirs: Answer
    executor: str
    zone: str
    before: list[str] = field(default_factory=list)

    @property
    def script(self) -> str:
        """Schema, rows and settings that the statement needs, and both answers."""
        settings = [f"SET timezone = '{self.zone}';", f"SET tenure.executor = '{self.executor}'; -- Tenure's"]
        return "\n".join(
            [
                *self.before,
                *settings,
                self.statement.shown,
                f"-- here:\n    {self.ours.shown_without(self.theirs.rows)}",
                f"-- PostgreSQL:\n    {self.theirs.shown_without(self.ours.rows)}",
            ]
        )


@dataclass
class Report:
    count: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    failed_kinds: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    """A statement for each refusal."""
    undetermined: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By both SQLSTATEs: the statements whose errors depend on what comes first."""
    differences: list[Difference] = field(default_factory=list)

    @property
    def refused_share(self) -> float:
        return self.verdicts[Verdict.REFUSED] / max(self.count, 1)


@contextmanager
def both_sides(server: Server) -> Iterator[tuple[Side, Side]]:
    """A node with an empty store, and a database in PostgreSQL: text in C's order, Unicode's letters."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        connection.execute(
            f"CREATE DATABASE {DATABASE} TEMPLATE template0 LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'"
        )
    with TemporaryDirectory() as directory:
        node = Node(NodeOptions(f"sqlite:{Path(directory) / 'store.db'}", listen=Listen(port=0)), SystemEnv())
        assert node.front is not None
        log = logging.getLogger("tenure")
        level = log.level
        log.setLevel(logging.ERROR)
        ours = Side(f"host={node.front.host} port={node.front.port} user=root dbname=defaultdb")
        theirs = Side(server.dsn.replace("dbname=postgres", f"dbname={DATABASE}"))
        try:
            yield ours, theirs
        finally:
            log.setLevel(level)
            ours.close()
            theirs.close()
            node.stop()


class Run:
    def __init__(self, ours: Side, theirs: Side, seed: int) -> None:
        self._ours, self._theirs = ours, theirs
        self._random = Random(seed)
        self._writes = Writes(Random(seed + 1))
        self._makers = _makers(Random(seed))
        self._batches = _batches(Random(seed + 2))
        self._executor, self._zone = EXECUTORS[0], ZONES[0]
        self.report = Report()

    def run(self, statements: int) -> Report:
        self.create()
        weighted = {name: weight for name, (weight, _) in (*self._makers.items(), *self._batches.items())}
        names, weights = [*weighted], [*weighted.values()]
        while self.report.count < statements:
            if self.report.count % STATEMENTS_PER_SETTING == 0:
                self._choose_settings()
            name = self._random.choices(names, weights)[0]
            if name == "writes":
                self._run_writes()
            elif name in self._batches:
                self._run_batch(name, self._batches[name][1]())
            else:
                self._compare(self._makers[name][1](), name)
        return self.report

    def create(self) -> None:
        fill = list(world.fill(Random(self._random.random())))
        for side in (self._theirs, self._ours):
            side.must("SET client_min_messages = warning")
            side.must("SET statement_timeout = '10s'")
            for text in [*world.schema(), *fill, *world.refill()]:
                side.must(text)
            side.learn_types()

    def _choose_settings(self) -> None:
        turn = self.report.count // STATEMENTS_PER_SETTING
        self._executor, self._zone = EXECUTORS[turn % 3], ZONES[turn // 3 % 3]
        self._ours.must(f"SET tenure.executor = '{self._executor}'")
        for side in (self._ours, self._theirs):
            side.must(f"SET timezone = '{self._zone}'")

    def _compare(self, statement: Statement, kind: str, before: list[str] | None = None) -> Verdict:
        ours, theirs = self._ours.ask(statement), self._theirs.ask(statement)
        found = verdict(statement, ours, theirs)
        report = self.report
        report.count += 1
        report.kinds[kind] += 1
        report.verdicts[found] += 1
        if theirs.sqlstate:
            report.errors += 1
            report.failed_kinds[kind] += 1
        if found is Verdict.REFUSED:
            report.refusals[ours.message] += 1
            report.refused.setdefault(ours.message, statement.shown)
        if found is Verdict.UNDETERMINED:
            report.undetermined.setdefault((ours.sqlstate, theirs.sqlstate), []).append(statement.shown)
        if found is Verdict.DIFFERENT:
            script = before if before is not None else self._needed(statement)
            report.differences.append(Difference(statement, ours, theirs, self._executor, self._zone, script))
        return found

    def _needed(self, statement: Statement) -> list[str]:
        def fails() -> bool:
            ours, theirs = self._ours.ask(statement), self._theirs.ask(statement)
            return verdict(statement, ours, theirs) is Verdict.DIFFERENT

        return scripts.needed(statement, self._ours, self._theirs, fails)

    def _run_batch(self, name: str, batch: Batch) -> None:
        log: list[str] = []
        for statement in batch.statements:
            if self._compare(statement, name, [*log]) is not Verdict.SAME:
                break
            log.append(statement.shown)
        for side in (self._ours, self._theirs):
            for text in batch.undone:
                side.must(text)

    def _run_writes(self) -> None:
        """A batch, then what the tables hold; afterwards they are as at the beginning."""
        log = ["-- the schema of tests/differential/world.py and its refill(), then:"]
        is_same = True
        for statement in self._writes.batch():
            is_same = self._compare(statement, "writes", [*log]) is Verdict.SAME
            if not is_same:
                # From here on the two sides may go different ways, and rightly so.
                break
            log.append(statement.shown)
        for table in world.WRITTEN if is_same else ():
            columns = "*" if table != "note" else "body, day, t, iv, by, j, f, i8"
            # Which numbers a serial gives after failures is nobody's promise.
            text = f"SELECT {columns} FROM {table} ORDER BY {world.WRITTEN_KEYS[table]}"
            statement = Statement(text, is_ordered=table != "note")
            if self._compare(statement, "contents", [*log]) is not Verdict.SAME:
                break
        for side in (self._ours, self._theirs):
            for text in ("ROLLBACK", *world.refill()):
                side.must(text)


def _makers(random: Random) -> dict[str, tuple[float, Callable[[], Statement]]]:
    """By name: how often, and what makes one. Writes have a way of their own."""
    queries, shapes, mistakes = Queries(random), Shapes(random), Mistakes(random)
    return {
        "call": (32, queries.call),
        "nested": (5, queries.nested),
        "cast": (10, queries.cast),
        "aggregate": (10, queries.aggregate),
        "window": (7, queries.window),
        "rows": (3, queries.rows),
        "syntax": (4, shapes.syntax),
        "join": (5, shapes.join),
        "using": (1, shapes.using),
        "subquery": (4, shapes.subquery),
        "derived": (3, shapes.derived),
        "combined": (3, shapes.combined),
        "distinct": (2, shapes.distinct),
        "ordered": (3, shapes.ordered),
        "recursive": (1, shapes.recursive),
        "values": (2, shapes.values),
        "lateral": (1, shapes.lateral),
        "point": (4, shapes.point),
        "locked": (2, shapes.locked),
        "copied": (2, shapes.copied),
        "mistake": (6, mistakes.one),
        "writes": (3, mistakes.one),
    }


def _batches(random: Random) -> dict[str, tuple[float, Callable[[], Batch]]]:
    """A batch is several statements, so each comes less often."""
    batches = Batches(random)
    return {"cursor": (0.4, batches.cursor), "view": (0.4, batches.view), "table": (0.5, batches.table)}
