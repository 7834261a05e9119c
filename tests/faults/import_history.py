"""Imports and SQL transactions on the same tables, on two nodes: for all who look, one after the other.

Tables are flushed and cleaned all the time, too. In a longer run a node is killed now and then: another one
goes on with its imports, or takes them back.

Walk: `__main__` and `test_import_smoke` call `import_history` with a `Run`.
"""

import time
from contextlib import suppress

import psycopg

from tests.faults.harness import Result, Run, wait_for
from tests.faults.import_load import Load
from tests.faults.import_watch import Observer
from tests.faults.serial_checker import check
from tests.faults.sql_nodes import TTL_SECONDS, SqlNodes

NAMES = ("n0", "n1")
CLIENTS, IMPORTERS = 4, 2
KILL_SECONDS = 8.0
"""Between two kills, and before the first: a quick run has none."""

JOBS_SECONDS_MAX = 60.0
SETTINGS = (
    "SET CLUSTER SETTING lake.flush_bytes = 3000",
    "SET CLUSTER SETTING lake.clean_after = '1s'",
    "SET CLUSTER SETTING lake.file_grace = '1s'",
)


def import_history(run: Run) -> Result:
    """Whatever is imported meanwhile, transactions are serializable, and watches are told."""
    result = Result()
    base = run.files / f"lake-{run.seed}-{run.engine}"
    lake, files = base / "lake", base / "files"
    files.mkdir(parents=True)
    more = ("--lake", str(lake), "--files", str(files))
    with SqlNodes(run, "import_history", more=more) as nodes:
        nodes.start(*NAMES)
        nodes.execute(NAMES[0], *SETTINGS)
        load = Load(nodes, files, run.seed, clients=CLIENTS, importers=IMPORTERS)
        load.set_up(NAMES[0])
        with Observer(nodes.store, lake) as observer:
            load.start()
            kills = _break(run, nodes)
            result.violations += load.stop()
            _await_jobs(nodes, result)
            for name in NAMES:
                load.look(name)
            result.violations += observer.end()
            facts = observer.facts()
        result.violations += check(load.attempts, facts)
        nodes.stop(result)
    states = load.states
    result.require(states["imports"] > 0, "no import has succeeded")
    result.counts |= {
        **states,
        "told to scan again": sum(each.has_moved for each in facts.lives),
        "kills": kills,
    }
    return result


def _break(run: Run, nodes: SqlNodes) -> int:
    rng, kills = run.rng, 0
    until = time.monotonic() + run.seconds
    while time.monotonic() + KILL_SECONDS < until:
        time.sleep(KILL_SECONDS * rng.uniform(0.6, 1.0))
        victim = rng.choice(NAMES)
        nodes.kill(victim)
        time.sleep(TTL_SECONDS * rng.choice((0.0, 1.2)))
        nodes.start(victim)
        kills += 1
    time.sleep(max(0.0, until - time.monotonic()))
    return kills


def _await_jobs(nodes: SqlNodes, result: Result) -> None:
    """Until no import is left, whose client may be gone."""
    query = "SELECT count(*) FROM tenure_internal.jobs WHERE job_type = 'import' AND finished IS NULL"

    def is_done() -> bool:
        with suppress(psycopg.Error):
            return nodes.execute(NAMES[0], query) == [(0,)]
        return False

    result.require(wait_for(is_done, JOBS_SECONDS_MAX), "imports do not come to an end")
