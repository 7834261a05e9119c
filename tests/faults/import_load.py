"""Clients that read and write two tables at random, and importers that bring rows into them meanwhile.

    explicit    BEGIN; statements; COMMIT         some of them with FOR UPDATE
    together    the same in one query string, a transaction by itself, which its node may run again
    past        reads AS OF SYSTEM TIME
    import      IMPORT INTO: some meet keys that are there, some are canceled, or lose their client

Queries run by rows or by DuckDB. Each transaction ends by asking as of when it read; one that writes notes
its number in a table of its own, so that the store can be asked when it was committed.

Walk: `import_history` makes a `Load` over `SqlNodes`; what happened are its `attempts`.
"""

import random
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from tenure.base.timestamp import parse, to_text
from tests.faults.crew import Crew
from tests.faults.serial_checker import Attempt, Step
from tests.faults.serial_model import (
    SETUP,
    TABLES,
    Answer,
    Between,
    ById,
    Delete,
    Import,
    InGroup,
    Insert,
    Read,
    Row,
    Statement,
    Sum,
    Unique,
    Update,
    Upsert,
    Where,
)
from tests.faults.sql_history import ACKED, REFUSED, UNKNOWN, state_after
from tests.faults.sql_nodes import SqlNodes, cut

IDS, GROUPS, UNITS = 150, 6, 400
JOIN_SECONDS_MAX = 60.0
BACKOFF_SECONDS = 0.02
PAUSES = (0.4, 1.2)
"""Between imports of one table, as shares of the time that one took: others want to use it."""

THINK_SECONDS_MAX = 0.3
TIMES_MAX = 200

NOTED = "noted"
ASK_TIME = "SELECT cluster_logical_timestamp()"

Connection = psycopg.Connection[tuple[Any, ...]]


class Load:
    def __init__(self, nodes: SqlNodes, files: Path, seed: int, *, clients: int, importers: int) -> None:
        self.nodes = nodes
        self.files = files
        self.attempts: list[Attempt] = []
        self.times: list[int] = []
        """At which nodes have read: those who want to read the past take one."""
        self.numbers = count(1)
        self.workers: list[_Worker] = [
            *(Client(self, random.Random(f"{seed}.c{n}")) for n in range(clients)),
            *(Importer(self, random.Random(f"{seed}.i{n}"), TABLES[n % 2]) for n in range(importers)),
        ]
        self.crew = Crew(each.run for each in self.workers)
        self.troubles: list[str] = []

    def set_up(self, name: str) -> None:
        self.nodes.execute(name, *SETUP, f"CREATE TABLE {NOTED} (n int8 PRIMARY KEY)")

    def start(self) -> None:
        self.crew.start()

    def stop(self) -> list[str]:
        """What went wrong with the clients themselves."""
        stuck = len(self.crew.stop(JOIN_SECONDS_MAX))
        return [*self.troubles, *([f"hang: {stuck} clients do not come to an end"] if stuck else [])]

    def look(self, name: str) -> None:
        """Reads all there is on a node, by every index and by both executors, as attempts like any other."""
        client = Client(self, random.Random(0), name)
        every: list[Where] = [Between(0, IDS), *map(InGroup, range(GROUPS))]
        steps: list[Statement] = [Read(table, where) for table in TABLES for where in every]
        steps += [Sum(table, where) for table in TABLES for where in every]
        for how in ("rows", "duckdb"):
            client.explicit(steps, how)
        client.close()

    @property
    def states(self) -> dict[str, int]:
        imports = [each for each in self.attempts if each.is_import]
        return {
            "transactions": sum(each.state == ACKED for each in self.attempts),
            "imports": sum(each.state == ACKED for each in imports),
            "refused": sum(each.state == REFUSED for each in self.attempts),
            "imports refused": sum(each.state == REFUSED for each in imports),
            "unknown": sum(each.state == UNKNOWN for each in self.attempts),
        }


class _Worker:
    def __init__(self, load: Load, rng: random.Random, node: str = "") -> None:
        self.load = load
        self.rng = rng
        self._node = node
        self._connection: Connection | None = None

    def run(self) -> None:
        while not self.load.crew.stopping.is_set():
            try:
                self.work()
            except psycopg.Error as error:
                if error.sqlstate is not None:
                    self.load.troubles.append(f"client: {error.sqlstate} {error}")
                self.close()
                time.sleep(BACKOFF_SECONDS)
        self.close()

    def work(self) -> None:
        raise NotImplementedError

    def connection(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self.load.nodes.connect(self._node)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()


class Client(_Worker):
    def work(self) -> None:
        how = self.rng.choice(("rows", "duckdb", "auto"))
        kind = self.rng.random()
        if kind < 0.15:
            self.past([self._query() for _ in range(self.rng.randint(1, 2))], how)
        elif kind < 0.35:
            self.explicit([self._query(can_lock=True) for _ in range(self.rng.randint(1, 4))], how)
        else:
            number = next(self.load.numbers)
            steps = [self._any(number) for _ in range(self.rng.randint(1, 4))]
            steps[self.rng.randrange(len(steps))] = self._change(number)
            (self.explicit if kind < 0.75 else self.together)(steps, how, number)

    # ── what is asked ──────────────────────────────────────────────────────────────────────────

    def _any(self, number: int) -> Statement:
        return self._query(can_lock=True) if self.rng.random() < 0.6 else self._change(number)

    def _query(self, *, can_lock: bool = False) -> Read | Sum:
        table = self.rng.choice(TABLES)
        if self.rng.random() < 0.4:
            return Sum(table, self._where())
        limit = self.rng.randint(1, 4) if self.rng.random() < 0.3 else None
        is_locking = can_lock and self.rng.random() < 0.2
        return Read(table, self._where(), limit, self.rng.random() < 0.3, is_locking)

    def _change(self, number: int) -> Statement:
        rng, table, kind = self.rng, self.rng.choice(TABLES), self.rng.random()
        if kind < 0.45:
            u = rng.randrange(UNITS) if rng.random() < 0.5 else None
            row = Row(rng.randrange(IDS), rng.randrange(GROUPS), rng.randint(-9, 9), u, number)
            return rng.choice((Insert, Upsert))(table, row)
        if kind < 0.8:
            return Update(table, self._where(), rng.randrange(GROUPS), rng.randint(-9, 9), number)
        return Delete(table, self._where())

    def _where(self) -> Where:
        rng = self.rng
        lo = rng.randrange(IDS)
        return rng.choice(
            (ById(lo), ById(lo), Between(lo, lo + rng.randint(0, 30)), InGroup(rng.randrange(GROUPS)),
             Unique(rng.randrange(UNITS)))
        )  # fmt: skip

    # ── how ────────────────────────────────────────────────────────────────────────────────────

    def explicit(self, asked: list[Statement], how: str, number: int | None = None) -> None:
        """Statement by statement."""
        connection = self.connection()
        connection.execute(f"SET tenure.executor = {how}".encode())
        attempt = _Attempt(self.load, number)
        has_asked = False
        try:
            connection.execute("BEGIN")
            for statement in asked:
                attempt.steps.append(Step(statement, None))
                attempt.steps[-1] = Step(statement, _answer(connection.execute(_sql(statement))))
                self._think()
            if number is not None:
                connection.execute(f"INSERT INTO {NOTED} VALUES ({number})".encode())
            attempt.read_at = _time(connection.execute(ASK_TIME))
            has_asked = True
            connection.execute("COMMIT")
        except psycopg.Error as error:
            attempt.fail(error, may_be_done=has_asked and number is not None)
            self._recover(connection)
        else:
            attempt.end(ACKED)

    def together(self, asked: list[Statement], how: str, number: int) -> None:
        """All in one string."""
        connection = self.connection()
        connection.execute(f"SET tenure.executor = {how}".encode())
        attempt = _Attempt(self.load, number)
        attempt.steps += [Step(statement, None) for statement in asked]
        texts = [*(_sql(statement).decode() for statement in asked)]
        texts += [f"INSERT INTO {NOTED} VALUES ({number})", ASK_TIME]
        try:
            cursor = connection.execute("; ".join(texts).encode())
            for place, statement in enumerate(asked):
                attempt.steps[place] = Step(statement, _answer(cursor))
                cursor.nextset()
            cursor.nextset()
            attempt.read_at = _time(cursor)
        except psycopg.Error as error:
            attempt.fail(error, may_be_done=True)
            self._recover(connection)
        else:
            attempt.end(ACKED)

    def past(self, asked: list[Read | Sum], how: str) -> None:
        """As of a time that somebody has read at before."""
        if not self.load.times:
            return
        at = self.rng.choice(self.load.times[-TIMES_MAX:])
        connection = self.connection()
        connection.execute(f"SET tenure.executor = {how}".encode())
        attempt = _Attempt(self.load, None, read_at=at, is_past=True)
        as_of = f" AS OF SYSTEM TIME {to_text(at)}"
        try:
            for statement in asked:
                attempt.steps.append(Step(statement, None))
                attempt.steps[-1] = Step(
                    statement, _answer(connection.execute(statement.sql(as_of).encode()))
                )
        except psycopg.Error as error:
            attempt.fail(error, may_be_done=False)
            self._recover(connection)
        else:
            attempt.end(ACKED)

    def _think(self) -> None:
        """Some transactions take their time: imports wait for them, or find them on their way."""
        if self.rng.random() < 0.1:
            time.sleep(self.rng.uniform(0.0, THINK_SECONDS_MAX))

    def _recover(self, connection: Connection) -> None:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        time.sleep(self.rng.uniform(0.0, BACKOFF_SECONDS))


class Importer(_Worker):
    def __init__(self, load: Load, rng: random.Random, table: str) -> None:
        super().__init__(load, rng)
        self._table = table

    def work(self) -> None:
        number, table = next(self.load.numbers), self._table
        connection = self.connection()
        rows = self._rows(connection, table, number)
        location = f"{number}.csv"
        text = "".join(",".join("" if value is None else str(value) for value in row) + "\n" for row in rows)
        (self.load.files / location).write_text(text)
        attempt = _Attempt(self.load, number)
        attempt.steps.append(Step(Import(table, rows), None))
        end, blow = self.rng.random(), None
        if end < 0.3:
            strike = connection.cancel_safe if end < 0.2 else lambda: cut(connection)
            blow = threading.Timer(self.rng.uniform(0.0, 0.4), strike)
            blow.start()
        began = time.monotonic()
        try:
            cursor = connection.execute(f"IMPORT INTO {table} CSV DATA ('{location}')".encode())
            ((_, imported, *_),) = cursor.fetchall()
            attempt.steps[0] = Step(Import(table, rows), int(imported))
        except psycopg.Error as error:
            attempt.fail(error, may_be_done=True)
        else:
            attempt.end(ACKED)
        took = time.monotonic() - began
        if blow is not None:
            blow.cancel()
            blow.join()
            self.close()
        time.sleep(took * self.rng.uniform(*PAUSES))

    def _rows(self, connection: Connection, table: str, number: int) -> tuple[Row, ...]:
        """Rows whose keys were free a moment ago, but for some."""
        rng = self.rng
        try:
            there = connection.execute(f"SELECT id, u FROM {table}".encode()).fetchall()
        except psycopg.errors.ObjectNotInPrerequisiteState:
            there = []  # somebody else imports: most likely this one will meet what it brings
        ids, units = {id for id, _ in there}, {u for _, u in there}
        if rng.random() < 0.2:
            ids, units = set(), set()
        free = [id for id in range(IDS) if id not in ids] or list(range(IDS))
        free_units = [u for u in range(UNITS) if u not in units]
        chosen = rng.sample(free, min(len(free), rng.randint(1, 25)))
        rows = [
            Row(id, rng.randrange(GROUPS), rng.randint(-9, 9), u if rng.random() < 0.5 else None, number)
            for id, u in zip(chosen, rng.sample(free_units, len(chosen)), strict=True)
        ]
        return tuple(rows) if rng.random() < 0.95 else (*rows, *rows[:1])


class _Attempt:
    """An attempt that is being made."""

    def __init__(
        self, load: Load, number: int | None, *, read_at: int | None = None, is_past: bool = False
    ) -> None:
        self.steps: list[Step] = []
        self.read_at = read_at
        self._load = load
        self._is_writer = number is not None
        self._number = next(load.numbers) if number is None else number
        self._is_past = is_past
        self._began = time.monotonic_ns()

    def fail(self, error: psycopg.Error, *, may_be_done: bool) -> None:
        sqlstate = error.sqlstate or ""
        self.end(state_after(sqlstate, may_be_done=may_be_done), sqlstate, str(error))

    def end(self, state: str, sqlstate: str = "", message: str = "") -> None:
        attempt = Attempt(
            self._number,
            tuple(self.steps),
            state,
            self._began,
            time.monotonic_ns(),
            self.read_at,
            self._is_past,
            self._is_writer,
            sqlstate,
            message,
        )
        self._load.attempts.append(attempt)
        if self.read_at is not None:
            self._load.times.append(self.read_at)


def _sql(statement: Statement) -> bytes:
    assert not isinstance(statement, Import)
    return statement.sql().encode()


def _answer(cursor: "psycopg.Cursor[tuple[Any, ...]]") -> Answer:
    return tuple(cursor.fetchall()) if cursor.description else cursor.rowcount


def _time(cursor: "psycopg.Cursor[tuple[Any, ...]]") -> int:
    ((at,),) = cursor.fetchall()
    return parse(str(at))
