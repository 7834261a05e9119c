"""Writes a script by asking PostgreSQL each statement as it is written: so most of them fit what is there.

    client 1   everything: blocks, savepoints, definitions, rows, cursors; whole episodes now and then
    client 2   in some scripts: reads "shared", which client 1 only changes the rows of, or works on "own",
               which nobody else knows; a block does one of the two. So the outcome is determined, and
               nobody waits

Walk: `run` calls `write`, and has the script played by Tenure.
"""

from collections.abc import Callable
from random import Random

from tests.differential.sides import Statement
from tests.differential.transactions import catalog as catalogs
from tests.differential.transactions.catalog import Catalog
from tests.differential.transactions.definitions import Definitions
from tests.differential.transactions.episodes import Episodes
from tests.differential.transactions.objects import Objects
from tests.differential.transactions.rows import Rows, written
from tests.differential.transactions.steps import IDLE, IN_BLOCK, Client, Step
from tests.differential.transactions.talk import Talk

STEPS_MIN, STEPS_MAX = 8, 30
TWO_CLIENTS_SHARE, SECOND_CLIENT_SHARE = 0.3, 0.4
EPISODES_SHARE, EPISODE_PACE = 0.3, 0.85
ONLY_READS_SHARE = 0.5
SHARED, OWN = "shared", "own"
SAVEPOINTS = ("s0", "s1", "s2")
TWO_CLIENTS_TABLES = (
    f"CREATE TABLE {SHARED} (id integer PRIMARY KEY, a integer, b text)",
    f"INSERT INTO {SHARED} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, NULL, 'c')",
    f"CREATE TABLE {OWN} (id integer PRIMARY KEY, a integer UNIQUE, b text)",
)


class Writer:
    def __init__(self, random: Random, clients: list[Client]) -> None:
        self._random = random
        self._clients = clients
        self._definitions, self._objects, self._rows = Definitions(random), Objects(random), Rows(random)
        self._talks = [Talk(random, self._rows) for _ in clients]
        self._savepoints: list[list[str]] = [[] for _ in clients]
        self._catalogs = [Catalog() for _ in clients]
        self._steps: list[Step] = []
        self._is_alone = True
        self._episodes = Episodes(random, self._rows)
        self._only_reads = True
        """Whether client 2's next block reads what client 1 writes, and writes nothing itself."""
        self._pending: list[Statement] = []
        """What is left of client 1's episode."""

    def write(self) -> list[Step]:
        random = self._random
        self._is_alone = random.random() >= TWO_CLIENTS_SHARE
        self._set_up()
        for _ in range(random.randint(STEPS_MIN, STEPS_MAX)):
            client = 1 if not self._is_alone and random.random() < SECOND_CLIENT_SHARE else 0
            self._say(client, self._next(client))
        for at, each in enumerate(self._clients):
            if each.status != IDLE:
                self._say(at, written("COMMIT" if random.random() < 0.85 else "ROLLBACK"))
        return self._steps

    def _set_up(self) -> None:
        for text in () if self._is_alone else TWO_CLIENTS_TABLES:
            self._say(0, written(text))
        for _ in range(self._random.randint(1, 3)):
            self._say(0, written(self._definitions.create_table(self._mine(0))))
        for _ in range(self._random.randint(2, 5)):
            self._say(0, self._rows.change(self._mine(0)))

    def _say(self, client: int, statement: Statement) -> None:
        reply = self._clients[client].ask_step(statement)
        self._steps.append(Step(client, statement))
        if client == 0 and reply.status != IN_BLOCK:
            self._pending.clear()
        if reply.status == IDLE:
            self._savepoints[client].clear()
            if client == 1:
                self._only_reads = self._random.random() < ONLY_READS_SHARE
        elif not reply.answer.sqlstate:
            self._follow(client, statement.text)

    def _follow(self, client: int, text: str) -> None:
        """Which savepoints there are."""
        savepoints = self._savepoints[client]
        verb, _, name = text.rpartition(" ")
        if verb == "SAVEPOINT":
            savepoints.append(name)
        elif verb in ("ROLLBACK TO", "RELEASE") and name in savepoints:
            last = len(savepoints) - 1 - savepoints[::-1].index(name)
            del savepoints[last + (verb == "ROLLBACK TO") :]

    def _next(self, client: int) -> Statement:
        status = self._clients[client].status
        if client == 0 and self._pending and status == IN_BLOCK and self._random.random() < EPISODE_PACE:
            return self._pending.pop(0)
        if status == IDLE:
            return self._outside(client)
        return self._inside(client) if status == IN_BLOCK else self._after_an_error(client)

    def _outside(self, client: int) -> Statement:
        talk = self._talks[client]
        return self._chosen(
            (6, lambda: talk.begin(is_alone=self._is_alone)),
            (5, lambda: self._statement(client, is_in_block=False)),
            (0.4, lambda: talk.setting(is_in_block=False)),
        )

    def _inside(self, client: int) -> Statement:
        talk = self._talks[client]
        if client == 0 and not self._pending and self._random.random() < EPISODES_SHARE:
            self._pending = self._episodes.one(self._mine(client).without(SHARED))
        return self._chosen(
            (14, lambda: self._statement(client, is_in_block=True)),
            (2, lambda: written(f"SAVEPOINT {self._random.choice(SAVEPOINTS)}")),
            (1.2, lambda: self._to_savepoint(client)),
            (0.4, lambda: self._to_savepoint(client, "RELEASE")),
            (1.6, lambda: written("COMMIT")),
            (0.3, lambda: written("ROLLBACK")),
            (0.3, lambda: talk.setting(is_in_block=True)),
        )

    def _after_an_error(self, client: int) -> Statement:
        return self._chosen(
            (4 if self._savepoints[client] else 0.1, lambda: self._to_savepoint(client)),
            (1.5, lambda: written("ROLLBACK")),
            (1, lambda: written("COMMIT")),
            (0.6, lambda: self._rows.query(self._catalogs[client])),
        )

    def _to_savepoint(self, client: int, verb: str = "ROLLBACK TO") -> Statement:
        return written(f"{verb} {self._random.choice(self._savepoints[client] or ['s0'])}")

    def _statement(self, client: int, *, is_in_block: bool) -> Statement:
        catalog, talk = self._mine(client), self._talks[client]
        defining = catalog.without(SHARED)
        if client == 1 and is_in_block and self._only_reads:
            return self._chosen((2, lambda: self._rows.query(catalog)), (1, lambda: talk.cursor(catalog)))
        return self._chosen(
            (5 if client == 0 else 0, lambda: written(self._definitions.one(defining))),
            (0 if client == 0 else 1, lambda: written(self._definitions.alteration(defining))),
            (3 if client == 0 else 0, lambda: written(self._objects.one(defining, is_in_block=is_in_block))),
            (9, lambda: self._rows.change(catalog if client == 0 else defining)),
            (4, lambda: self._rows.query(catalog)),
            (6 if talk.has_cursors else 2, lambda: talk.cursor(catalog)),
            (1.5, lambda: talk.prepared(defining)),
        )

    def _mine(self, client: int) -> Catalog:
        """What the client may use, as it is now."""
        if self._clients[client].status in (IDLE, IN_BLOCK):
            found = catalogs.read(self._clients[client])
            self._catalogs[client] = found.without(OWN) if client == 0 else found.only(*self._second_tables())
        return self._catalogs[client]

    def _second_tables(self) -> tuple[str, ...]:
        if self._clients[1].status == IDLE:
            return SHARED, OWN
        return (SHARED,) if self._only_reads else (OWN,)

    def _chosen(self, *forms: tuple[float, Callable[[], Statement]]) -> Statement:
        return self._random.choices([make for _, make in forms], [weight for weight, _ in forms])[0]()
