"""SQL clients that move money, count, take numbers and add up, each in a thread, until told to stop.

    locked     BEGIN; SELECT ... FOR UPDATE; UPDATE, UPDATE; INSERT INTO ledger; COMMIT
    plain      the same without locks: the new balances are computed by the client
    together   UPDATE; UPDATE; INSERT in one query string, a transaction by itself
    bump       one UPDATE
    ticket     one INSERT under a number that only one may have
    total      sums, by rows and by DuckDB
    look       an acknowledged transfer is looked up on another node
    star       SELECT *, prepared: its columns may change under it

A client that loses its connection connects again, to any node.

Walk: the scenarios `sql_*` make a `Load` over `SqlNodes`; what happened is in its `History`.
"""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from tests.faults.crew import Crew
from tests.faults.harness import wait_for
from tests.faults.sql_history import (
    ACKED,
    Bump,
    Final,
    History,
    Missing,
    Ticket,
    Total,
    Transfer,
    Trouble,
    state_after,
)
from tests.faults.sql_nodes import SqlNodes, cut

ACCOUNTS = 40
BRANCHES = 5
COUNTERS = 4
NUMBERS = 400
START = 1_000
JOIN_SECONDS_MAX = 40.0
PAUSE_SECONDS = 0.1
BACKOFF_SECONDS = 0.02
"""After an error, as a sensible client: who asks again at once keeps nodes from recovering."""

PLAN_CHANGED = "0A000"

SETUP = (
    "CREATE TABLE accounts (id int PRIMARY KEY, branch int NOT NULL, balance int NOT NULL, note text)",
    "CREATE INDEX by_branch ON accounts (branch)",
    "CREATE TABLE ledger (op text PRIMARY KEY, source int, target int, amount int)",
    "CREATE INDEX by_source ON ledger (source)",
    "CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)",
    "CREATE TABLE tickets (op text PRIMARY KEY, number int NOT NULL UNIQUE)",
    f"INSERT INTO accounts SELECT n, n % {BRANCHES}, {START}, '' FROM generate_series(1, {ACCOUNTS}) n",
    f"INSERT INTO counters SELECT n, 0 FROM generate_series(1, {COUNTERS}) n",
)

Connection = psycopg.Connection[tuple[Any, ...]]


class Load:
    def __init__(self, nodes: SqlNodes, seed: int, *, clients: int = 5) -> None:
        self.nodes = nodes
        self.history = History()
        self.accounts = "accounts"
        """The table's name now; a scenario may rename it."""
        self.clients = [Client(self, f"c{n}", random.Random(f"{seed}.{n}")) for n in range(clients)]
        self.crew = Crew(each.run for each in self.clients)

    def set_up(self, name: str) -> None:
        self.nodes.execute(name, *SETUP)

    def start(self) -> None:
        self.crew.start()

    def stop(self) -> list[str]:
        """Violations: clients that hang."""
        stuck = [self.clients[number] for number in self.crew.stop(JOIN_SECONDS_MAX)]
        now = time.monotonic()
        return [f"hang: {each.name} has been at {each.doing} for {now - each.since:.0f} s" for each in stuck]

    def standstill(self, seconds: float) -> list[str]:
        """A violation unless something is acknowledged within that time: what all are at instead."""
        before = self.history.acked()
        if wait_for(lambda: self.history.acked() > before, seconds):
            return []
        found = [f"standstill: nothing was acknowledged within {seconds:.0f} s"]
        now = time.monotonic()
        found += [f"{each.name} at {each.doing} for {now - each.since:.1f} s" for each in self.clients]
        for name in self.nodes.ports:
            with suppress(psycopg.Error):
                rows = self.nodes.execute(name, "SELECT * FROM tenure_internal.locks LIMIT 20")
                found += [f"{name} has {row}" for row in rows]
        return found

    def final(self, name: str) -> Final:
        """Reads the tables whole, and compares them with what their indexes say."""
        with self.nodes.connect(name) as client:
            accounts = client.execute(f"SELECT id, branch, balance FROM {self.accounts}".encode()).fetchall()
            ledger = client.execute("SELECT op, source, target, amount FROM ledger").fetchall()
            counters = dict(client.execute("SELECT id, n FROM counters").fetchall())
            tickets = dict(client.execute("SELECT op, number FROM tickets").fetchall())
            differences = self._differences(client, accounts, ledger, tickets)
        return Final(
            balances={id: balance for id, _, balance in accounts},
            ledger={op: (source, target, amount) for op, source, target, amount in ledger},
            counters=counters,
            tickets=tickets,
            differences=tuple(differences),
        )

    def _differences(
        self, client: Connection, accounts: list[Any], ledger: list[Any], tickets: dict[str, int]
    ) -> list[str]:
        found = []
        for query, wanted in (
            *((f"SELECT id FROM {self.accounts} WHERE branch = {n}", {a[0] for a in accounts if a[1] == n})
              for n in range(BRANCHES)),
            *((f"SELECT op FROM ledger WHERE source = {n}", {each[0] for each in ledger if each[1] == n})
              for n in range(1, ACCOUNTS + 1)),
            *((f"SELECT op FROM tickets WHERE number = {number}", {op}) for op, number in tickets.items()),
        ):  # fmt: skip
            rows = {row[0] for row in client.execute(query.encode()).fetchall()}
            if rows != wanted:
                found.append(f"{query} gives {sorted(rows)}, the rows say {sorted(wanted)}")
        return found


class Client:
    def __init__(self, load: Load, name: str, rng: random.Random) -> None:
        self.name = name
        self.doing = ""
        self.since = 0.0
        self._load = load
        self._rng = rng
        self._number = 0
        self._connection: Connection | None = None
        self._has_asked = False
        """Whether what is being done may have been committed."""

    def run(self) -> None:
        works = (
            *[self._locked] * 3,
            *[self._plain] * 2,
            *[self._together] * 2,
            *[self._bump] * 2,
            *[self._ticket] * 2,
            *[self._total] * 2,
            self._look,
            self._star,
        )
        while not self._load.crew.stopping.is_set():
            connection = self._connected()
            if connection is not None:
                work = self._rng.choice(works)
                self.doing, self.since = work.__name__, time.monotonic()
                work(connection)
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()

    def cut(self) -> bool:
        """Ends the client's connection under its hands."""
        return self._connection is not None and cut(self._connection)

    def _connected(self) -> Connection | None:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        self.doing, self.since = "connecting", time.monotonic()
        try:
            self._connection = self._load.nodes.connect(self._rng.choice(list(self._load.nodes.ports)))
        except psycopg.Error as error:
            self._trouble("connect", error)
            time.sleep(PAUSE_SECONDS)
            return None
        return self._connection

    def _attempt(self, doing: str, connection: Connection, work: Callable[[], None]) -> tuple[str, str]:
        """Does something and tells what came of it: the state and the SQLSTATE."""
        self._has_asked = False
        try:
            work()
        except psycopg.Error as error:
            sqlstate = self._trouble(doing, error)
            self._clean(connection)
            time.sleep(self._rng.uniform(0.0, BACKOFF_SECONDS))
            return state_after(sqlstate, may_be_done=self._has_asked), sqlstate
        return ACKED, ""

    def _trouble(self, doing: str, error: psycopg.Error) -> str:
        sqlstate = error.sqlstate or ""
        if sqlstate != "23505":
            self._load.history.add(Trouble(doing, sqlstate, str(error)))
        return sqlstate

    def _clean(self, connection: Connection) -> None:
        if connection.closed:
            return
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error as error:
            self._trouble("rollback", error)
            connection.close()

    def _next(self) -> str:
        self._number += 1
        return f"{self.name}.{self._number}"

    def _transfer(self, doing: str, connection: Connection, way: Callable[..., None]) -> None:
        source, target = self._rng.sample(range(1, ACCOUNTS + 1), 2)
        id, amount = self._next(), self._rng.randint(1, 50)
        state, _ = self._attempt(doing, connection, lambda: way(connection, id, source, target, amount))
        self._load.history.add(Transfer(id, source, target, amount, state))

    def _commit(self, connection: Connection) -> None:
        self._has_asked = True
        done = connection.execute("COMMIT").statusmessage
        assert done == "COMMIT", f"COMMIT answered {done}"

    def _locked(self, connection: Connection) -> None:
        def way(connection: Connection, id: str, source: int, target: int, amount: int) -> None:
            accounts = self._load.accounts
            connection.execute("BEGIN")
            connection.execute(
                f"SELECT balance FROM {accounts} WHERE id IN (%s, %s) ORDER BY id FOR UPDATE".encode(),
                (source, target),
            )
            move = f"UPDATE {accounts} SET balance = balance + %s WHERE id = %s".encode()
            connection.execute(move, (-amount, source))
            connection.execute("INSERT INTO ledger VALUES (%s, %s, %s, %s)", (id, source, target, amount))
            connection.execute(move, (amount, target))
            self._commit(connection)

        self._transfer("locked", connection, way)

    def _plain(self, connection: Connection) -> None:
        def way(connection: Connection, id: str, source: int, target: int, amount: int) -> None:
            accounts = self._load.accounts
            connection.execute("BEGIN")
            read = f"SELECT id, balance FROM {accounts} WHERE id = %s OR id = %s".encode()
            balances: dict[int, int] = dict(connection.execute(read, (source, target)).fetchall())
            put = f"UPDATE {accounts} SET balance = %s WHERE id = %s".encode()
            connection.execute("INSERT INTO ledger VALUES (%s, %s, %s, %s)", (id, source, target, amount))
            connection.execute(put, (balances[source] - amount, source))
            connection.execute(put, (balances[target] + amount, target))
            self._commit(connection)

        self._transfer("plain", connection, way)

    def _together(self, connection: Connection) -> None:
        def way(connection: Connection, id: str, source: int, target: int, amount: int) -> None:
            accounts = self._load.accounts
            self._has_asked = True
            connection.execute(
                f"UPDATE {accounts} SET balance = balance - {amount} WHERE id = {source};"
                f"UPDATE {accounts} SET balance = balance + {amount} WHERE id = {target};"
                f"INSERT INTO ledger VALUES ('{id}', {source}, {target}, {amount})".encode()
            )

        self._transfer("together", connection, way)

    def _bump(self, connection: Connection) -> None:
        counter = self._rng.randint(1, COUNTERS)

        def work() -> None:
            self._has_asked = True
            connection.execute("UPDATE counters SET n = n + 1 WHERE id = %s", (counter,))

        state, _ = self._attempt("bump", connection, work)
        self._load.history.add(Bump(counter, state))

    def _ticket(self, connection: Connection) -> None:
        id, number = self._next(), self._rng.randint(1, NUMBERS)

        def work() -> None:
            self._has_asked = True
            connection.execute("INSERT INTO tickets VALUES (%s, %s)", (id, number))

        state, sqlstate = self._attempt("ticket", connection, work)
        self._load.history.add(Ticket(id, number, state, sqlstate))

    def _total(self, connection: Connection) -> None:
        how = self._rng.choice(("rows", "duckdb", "auto"))
        seen: list[tuple[Any, ...]] = []

        def work() -> None:
            connection.execute(f"SET tenure.executor = {how}".encode())
            query = f"SELECT sum(balance)::int8, count(*) FROM {self._load.accounts}"
            seen.extend(connection.execute(query.encode()).fetchall())
            connection.execute("SET tenure.executor = auto")

        self._attempt("total", connection, work)
        for total, accounts in seen:
            self._load.history.add(Total(total, accounts, how))

    def _look(self, connection: Connection) -> None:
        acked = [each for each in self._load.history.transfers[-50:] if each.state == ACKED]
        if not acked:
            return
        id = self._rng.choice(acked).id
        seen: list[tuple[Any, ...]] = [()]

        def work() -> None:
            seen[:] = connection.execute("SELECT op FROM ledger WHERE op = %s", (id,)).fetchall()

        self._attempt("look", connection, work)
        if not seen:
            self._load.history.add(Missing(f"transfer {id}, acknowledged before, was not seen"))

    def _star(self, connection: Connection) -> None:
        id = self._rng.randint(1, ACCOUNTS)
        seen: list[tuple[int, ...]] = []

        def work() -> None:
            query = f"SELECT * FROM {self._load.accounts} WHERE id = %s"
            seen.extend(connection.execute(query.encode(), (id,), prepare=True).fetchall())

        state, sqlstate = self._attempt("star", connection, work)
        if sqlstate == PLAN_CHANGED:
            connection.close()  # the way out of a prepared statement whose columns have changed
        elif state == ACKED and [row[0] for row in seen] != [id]:
            self._load.history.add(Missing(f"account {id} was seen as {seen}"))
