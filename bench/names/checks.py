"""What a privilege check adds to a prepared point SELECT, with 1,000 roles and 10,000 grants.

    the check of one execution    at most 1 microsecond

Ten tables are granted to each of the roles. A session of one of them runs a prepared point SELECT; what is
timed is the check that each of its executions makes. A new lease lets the next execution look the privileges
up again: that one is printed.

Walk: `bench.__main__` -> `run` -> `sql.session.session_rights.StatementNeeds.require`.
"""

import statistics
import time
from collections.abc import Callable

from bench.leases.places import FIRST_ID, fill, nodes_over, table
from bench.ratio import Bar, Ratio, compare
from bench.store.places import store_path
from bench.store.rounds import note
from tenure.catalog.accounts.privileges import SELECT, initial
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, DEFAULT_SCHEMA
from tenure.catalog.descriptors.role_records import OWNER, WHOLE_OBJECT, AclEntry, ObjectPrivileges, Role
from tenure.front import Listen
from tenure.kv.transaction import Transaction
from tenure.node import Node
from tenure.sql.clients.session import Session
from tenure.sql.session.answers import Answer

ROLES, TABLES = 1_000, 10
ROLES_QUICK = 10
ROUNDS, PER_ROUND = 50, 2_000
ROUNDS_QUICK, PER_ROUND_QUICK = 3, 20
CHECK_MICROS = 1.0


def run(quick: bool) -> list[Ratio]:
    roles = ROLES_QUICK if quick else ROLES
    rounds, per_round = (ROUNDS_QUICK, PER_ROUND_QUICK) if quick else (ROUNDS, PER_ROUND)
    with store_path() as path, nodes_over(path, listen=Listen(port=0)) as (node,):
        _fill(node, roles)
        session = _session(node, f"role{roles // 2}")
        plan = session.prepared("point").plan
        assert plan is not None
        node.leases.renew()
        first = _timed(lambda: plan.needs.require(session.state, None))
        check = _median(rounds, per_round, lambda: plan.needs.require(session.state, None))
        empty = _median(rounds, per_round, lambda: None)
        whole = _median(rounds, per_round, lambda: _look(session))
        session.close()
    note(f"names.checks: {whole:.1f} us a SELECT; the first check under a lease {first:.1f} us")
    return [
        compare(
            "names.checks.select",
            ours=check - empty,
            peer=CHECK_MICROS,
            unit="us",
            bar=Bar.AT_MOST,
            limit=1.0,
        )
    ]


def _fill(node: Node, roles: int) -> None:
    """Roles and tables, each table granted to each role."""
    names = [f"role{number}" for number in range(roles)]
    tables = [
        table(FIRST_ID + number, f"t{number}", DEFAULT_DATABASE, DEFAULT_SCHEMA) for number in range(TABLES)
    ]
    fill(node.store, node.catalog, tables)

    def write(txn: Transaction) -> None:
        for number, name in enumerate(names):
            node.catalog.roles.put(txn, Role(name, FIRST_ID + TABLES + number, can_login=True))
        for each in tables:
            granted = tuple(AclEntry(name, OWNER, SELECT) for name in names)
            record = ObjectPrivileges(each.id, WHOLE_OBJECT, (*initial("table"), *granted))
            node.catalog.roles.put(txn, record)

    node.store.transact(write)
    node.leases.renew()


def _session(node: Node, role: str) -> Session:
    assert node.front is not None
    with_rows = node.front.sessions.open(user="root", database="defaultdb", options={})
    with_rows.prepare("", "INSERT INTO t1 (c1, c2) VALUES (1, 2)", ())
    with_rows.bind("", "", ())
    with_rows.execute("", ends=True)
    with_rows.close()
    session = node.front.sessions.open(user=role, database="defaultdb", options={})
    session.prepare("point", "SELECT c2 FROM t1 WHERE c1 = $1", ())
    _look(session)
    return session


def _look(session: Session) -> None:
    session.bind("", "point", (1,), inline=True)
    answer = session.execute("", ends=True, inline=True)
    assert isinstance(answer, Answer) and next(iter(answer.rows))[0] == 2, answer


def _median(rounds: int, per_round: int, call: Callable[[], object]) -> float:
    """Microseconds of one call."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        for _ in range(per_round):
            call()
        took.append((time.perf_counter_ns() - began) / per_round / 1_000)
    return statistics.median(took)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - began) / 1_000
