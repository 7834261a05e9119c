"""Money through SQL while the tables change under the clients, and nodes die in between.

Changes come in pairs that undo each other, so that clients see one of two shapes. They see no error but
those of nodes going away, those of names that really are others for a while, and that the columns of a
prepared SELECT * are others now.

Walk: `__main__` and `test_sql_smoke` call `sql_ddl` with a `Run`.
"""

import random
import signal
import threading
import time

import psycopg

from tests.faults.harness import Result, Run
from tests.faults.sql_bank import LONG_SECONDS, SLACK_SECONDS
from tests.faults.sql_checker import ORDINARY, check
from tests.faults.sql_load import ACCOUNTS, START, Load
from tests.faults.sql_nodes import TTL_SECONDS, SqlNodes

ALLOWED = ORDINARY | {"bump:42703", "ticket:42P01", "star:0A000"}

PAIRS = (
    (
        "ALTER TABLE accounts ADD COLUMN IF NOT EXISTS extra int NOT NULL DEFAULT 7",
        "ALTER TABLE accounts DROP COLUMN IF EXISTS extra",
    ),
    ("CREATE INDEX IF NOT EXISTS by_balance ON accounts (balance)", "DROP INDEX IF EXISTS by_balance"),
    ("ALTER TABLE counters RENAME COLUMN n TO m", "ALTER TABLE counters RENAME COLUMN m TO n"),
    ("ALTER TABLE tickets RENAME TO tickets_b", "ALTER TABLE tickets_b RENAME TO tickets"),
    (
        "ALTER TABLE accounts ADD CONSTRAINT sane CHECK (balance > -1000000)",
        "ALTER TABLE accounts DROP CONSTRAINT IF EXISTS sane",
    ),
    (
        "ALTER TABLE accounts ALTER COLUMN note TYPE varchar(100)",
        "ALTER TABLE accounts ALTER COLUMN note TYPE text",
    ),
    (
        "CREATE TABLE IF NOT EXISTS cards (id int PRIMARY KEY, account int REFERENCES accounts (id))",
        "DROP TABLE IF EXISTS cards",
    ),
)
LEDGER_PAIRS = (
    ("CREATE INDEX IF NOT EXISTS by_target ON ledger (target)", "DROP INDEX IF EXISTS by_target"),
    (
        "ALTER TABLE ledger ADD COLUMN IF NOT EXISTS at timestamptz DEFAULT now()",
        "ALTER TABLE ledger DROP COLUMN IF EXISTS at",
    ),
)
DONE_BEFORE = ("42P07", "42710", "42701", "42P01", "42703", "42704")
"""What a change says that has already happened: if its first answer was lost, that is success."""

CHANGE_SECONDS_MAX = 60.0


def sql_ddl(run: Run) -> Result:
    """Clients go on while tables change; in the end rows, indexes and names are right."""
    result = Result()
    names = ("n0", "n1", "n2") if run.seconds >= LONG_SECONDS else ("n0", "n1")
    with SqlNodes(run, "sql_ddl") as nodes:
        nodes.start(*names)
        load = Load(nodes, run.seed, clients=2 * len(names))
        load.set_up(names[0])
        changers = [
            Changer(nodes, PAIRS, random.Random(f"{run.seed}.a")),
            Changer(nodes, LEDGER_PAIRS, random.Random(f"{run.seed}.b")),
        ]
        load.start()
        for changer in changers:
            changer.start()
        kills = _break(run, nodes, names)
        for changer in changers:
            result.violations += changer.stop()
        result.violations += load.standstill(TTL_SECONDS + SLACK_SECONDS)
        result.violations += load.stop()
        final = load.final(names[-1])
        result.violations += check(load.history, final, start=START, accounts=ACCOUNTS, allowed=ALLOWED)
        result.violations += _indexes(nodes, names[0], final.balances)
        result.violations += _left_over(nodes, names[0])
        nodes.stop(result)
    changes = sum(changer.done for changer in changers)
    result.require(changes >= 4, f"only {changes} changes were made")
    result.counts |= load.history.counts() | {"changes": changes, "kills": kills}
    return result


def _break(run: Run, nodes: SqlNodes, names: tuple[str, ...]) -> int:
    rng, kills = run.rng, 0
    until = time.monotonic() + run.seconds
    while not kills or time.monotonic() < until:
        time.sleep(rng.uniform(0.5, 1.5))
        victim = rng.choice(names)
        if kills % 2 == 0:
            nodes.kill(victim)
            nodes.start(victim)
        else:
            nodes.signal(victim, signal.SIGSTOP)
            time.sleep(TTL_SECONDS * rng.choice((0.5, 1.3)))
            nodes.signal(victim, signal.SIGCONT)
        kills += 1
    time.sleep(max(0.0, until - time.monotonic()))
    return kills


def _indexes(nodes: SqlNodes, name: str, balances: dict[int, int]) -> list[str]:
    """An index made under load, or now, says what the rows say."""
    nodes.execute(name, PAIRS[1][0])
    found = []
    with nodes.connect(name) as client:
        for balance in set(balances.values()):
            rows = client.execute("SELECT id FROM accounts WHERE balance = %s", (balance,)).fetchall()
            wanted = {id for id, each in balances.items() if each == balance}
            if {id for (id,) in rows} != wanted:
                found.append(f"index: by_balance gives {rows} for {balance}, the rows say {wanted}")
    return found


def _left_over(nodes: SqlNodes, name: str) -> list[str]:
    """No change is left half way: all jobs have ended, and no column is there that should not be."""
    columns = nodes.execute(name, "SHOW COLUMNS FROM accounts")
    shown = [row[0] for row in columns]
    found = [] if shown == ["id", "branch", "balance", "note"] else [f"columns: accounts has {shown}"]
    open_jobs = nodes.execute(
        name,
        "SELECT job_id, job_type, status FROM tenure_internal.jobs WHERE finished IS NULL",
    )
    return found + [f"job: {job} is left" for job in open_jobs]


class Changer:
    """Makes changes and undoes them, each on any node, until told to stop; ends with all undone."""

    def __init__(self, nodes: SqlNodes, pairs: tuple[tuple[str, str], ...], rng: random.Random) -> None:
        self.done = 0
        self._nodes = nodes
        self._pairs = pairs
        self._rng = rng
        self._stopping = threading.Event()
        self._doing = ""
        self._violations: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[str]:
        self._stopping.set()
        self._thread.join(CHANGE_SECONDS_MAX)
        if self._thread.is_alive():
            self._violations.append(f"hang: {self._doing}")
        return self._violations

    def _run(self) -> None:
        pairs = list(self._pairs)
        while not self._stopping.is_set():
            self._rng.shuffle(pairs)
            for do, undo in pairs:
                if self._stopping.is_set():
                    break
                self._change(do)
                time.sleep(self._rng.uniform(0.0, 0.2))
                self._change(undo)

    def _change(self, statement: str) -> None:
        is_repeated = False
        self._doing = statement
        while True:
            try:
                self._nodes.execute(self._rng.choice(list(self._nodes.ports)), statement)
                break
            except psycopg.Error as error:
                sqlstate = error.sqlstate or ""
                if is_repeated and sqlstate in DONE_BEFORE:
                    break
                if sqlstate not in ORDINARY:
                    self._violations.append(f"change: {statement}: {sqlstate} {error}")
                    break
                is_repeated = True
                time.sleep(0.1)
        self.done += 1
