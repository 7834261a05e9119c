"""Clients that change rows of one table and remember each: what the table must hold, now and at past times.

Each client has keys of its own, so that what it remembers is exact. A *moment* is a timestamp at which no
client was in the middle of something, with a copy of what all of them remembered.

Walk: `flush_kills` and `export_kills` make a `Load` over a node, `import_kills` moments alone; `wrong`
compares what is remembered with what a node shows.
"""

import random
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, NamedTuple

import psycopg

from tests.faults.crew import Crew

CLIENTS = 3
MOMENTS_MAX = 4
"""So many past times are read again: the first one, and the last ones."""

JOIN_SECONDS_MAX = 30.0
RETRIED = ("40001", "40P01")

Rows = dict[int, tuple[int, str]]
"""What is where: the counter and the note of each id."""

Connect = Callable[[], "psycopg.Connection[tuple[Any, ...]]"]


class Moment(NamedTuple):
    at: str
    rows: Rows


class Load:
    def __init__(self, connect: Connect, rows: int, seed: int) -> None:
        self._connect = connect
        self._clients = [_Client(connect, rows, number, f"{seed}.{number}") for number in range(CLIENTS)]
        self.crew = Crew(partial(each.run, self) for each in self._clients)
        self.moments: list[Moment] = []
        with closing(connect()) as client:
            client.execute("CREATE TABLE items (id int PRIMARY KEY, n int NOT NULL, note text NOT NULL)")
            client.execute("CREATE INDEX by_n ON items (n)")
            for first in range(0, rows, 10_000):
                last = min(rows, first + 10_000)
                ids = f"generate_series({first + 1}, {last})"
                client.execute(f"INSERT INTO items SELECT g, 0, 'v' || g FROM {ids} g".encode())

    def start(self) -> None:
        self.crew.start()

    def stop(self) -> list[str]:
        stuck = [f"client: {number} does not come to an end" for number in self.crew.stop(JOIN_SECONDS_MAX)]
        return [*(each.trouble for each in self._clients if each.trouble), *stuck]

    @property
    def changes(self) -> int:
        return sum(each.changes for each in self._clients)

    def remember(self) -> Moment:
        """A moment as of now."""
        with ExitStack() as stack, closing(self._connect()) as client:
            for each in self._clients:
                stack.enter_context(each.lock)
            ((at,),) = client.execute("SELECT cluster_logical_timestamp()").fetchall()
            moment = Moment(str(at), {id: row for each in self._clients for id, row in each.rows.items()})
        self.moments = [*self.moments[:1], *self.moments[1:][-(MOMENTS_MAX - 2) :], moment]
        return moment

    def wrong(self) -> list[str]:
        """What a node shows otherwise than it was, at past times and just now."""
        self.remember()
        with closing(self._connect()) as client:
            return [text for moment in self.moments for text in wrong(client, moment)]


def wrong(client: "psycopg.Connection[tuple[Any, ...]]", moment: Moment) -> list[str]:
    """What is otherwise than remembered: rows, or what an index shows of them."""
    asked = f"FROM items AS OF SYSTEM TIME {moment.at}"
    found = client.execute(f"SELECT id, n, note {asked}".encode()).fetchall()
    shown = {id: (n, note) for id, n, note in found}
    if len(found) != len(shown):
        return [f"rows: at {moment.at} {len(found) - len(shown)} rows are there twice"]
    differing = sorted(id for id in shown.keys() | moment.rows.keys() if shown.get(id) != moment.rows.get(id))
    texts = [
        f"rows: at {moment.at} row {id} is {shown.get(id)}, not {moment.rows.get(id)}; {len(differing)} such"
        for id in differing[:1]
    ]
    ((count,),) = client.execute(f"SELECT count(*) {asked} WHERE n > 0".encode()).fetchall()
    expected = sum(n > 0 for n, _ in moment.rows.values())
    if count != expected:
        texts.append(f"index: at {moment.at} it shows {count} rows with n > 0, not {expected}")
    return texts


class _Client:
    def __init__(self, connect: Connect, rows: int, number: int, seed: str) -> None:
        self._connect = connect
        self._rng = random.Random(seed)
        self._ids = range(number + 1, rows + 1, CLIENTS)
        self.rows: Rows = {id: (0, f"v{id}") for id in self._ids}
        self.lock = threading.Lock()
        self.changes = 0
        self.trouble = ""

    def run(self, load: Load) -> None:
        stopping = load.crew.stopping
        try:
            with closing(self._connect()) as client:
                while not stopping.is_set():
                    with self.lock:
                        self._change(client, self._rng.choice(self._ids))
                    stopping.wait(0.01)
        except Exception as error:  # shown by whoever stops it
            self.trouble = f"client: {type(error).__name__}: {error}"

    def _change(self, client: "psycopg.Connection[tuple[Any, ...]]", id: int) -> None:
        if id not in self.rows:
            after: tuple[int, str] | None = (self._rng.randrange(5), f"again {self.changes}")
            statement = "INSERT INTO items (n, note, id) VALUES (%s, %s, %s)"
        elif self._rng.random() < 0.2:
            after, statement = None, "DELETE FROM items WHERE id = %s"
        else:
            after = (self.rows[id][0] + 1, f"new {self.changes}")
            statement = "UPDATE items SET n = %s, note = %s WHERE id = %s"
        while True:
            try:
                done = client.execute(statement.encode(), (*(after or ()), id)).rowcount
                break
            except psycopg.Error as error:
                if error.sqlstate not in RETRIED:
                    raise
        assert done == 1, f"{statement} of {id} found {done} rows"
        self.changes += 1
        if after is None:
            del self.rows[id]
        else:
            self.rows[id] = after
