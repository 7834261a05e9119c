"""Rows and constraints in one block, in every combination: as PostgreSQL answers, with one node and with two.

Each script has two tables, some rows, and a block that writes rows and declares a constraint. What came of it
is compared: the error that the block ended with, the rows afterwards, and whether the constraint is there.
Rows and probes are asked through the other node where there is one.

    dirty    rows are in the way of the constraint: what the block writes before it may clean them up
    clean    none is: what the block writes, before or after, may break it

A new constraint is proved with COMMIT here and with its statement there, so what a block cleans up only after
the statement is not compared.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Said, Talk, running

ACTIONS = ("NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT")

_numbers = count(1)


class Constraint(NamedTuple):
    declare: str
    dirty: str
    """A row of t that breaks it."""
    clean: str
    """The same row, so that it does not; none if any row does."""
    probe: str
    """A statement that it forbids."""


CONSTRAINTS = {
    "unique index": Constraint(
        "CREATE UNIQUE INDEX c{n} ON t{n} (v)",
        "(3, 1, 3)",
        "(3, 3, 3)",
        "INSERT INTO t{n} VALUES (50, 1, 50)",
    ),
    "unique constraint": Constraint(
        "ALTER TABLE t{n} ADD CONSTRAINT c{n} UNIQUE (v, w)",
        "(3, 1, 1)",
        "(3, 3, 3)",
        "INSERT INTO t{n} VALUES (50, 1, 1)",
    ),
    "not null": Constraint(
        "ALTER TABLE t{n} ALTER v SET NOT NULL",
        "(3, NULL, 3)",
        "(3, 3, 3)",
        "INSERT INTO t{n} VALUES (50, NULL, 50)",
    ),
    "check": Constraint(
        "ALTER TABLE t{n} ADD CONSTRAINT c{n} CHECK (v > 0)",
        "(3, -1, 3)",
        "(3, 3, 3)",
        "INSERT INTO t{n} VALUES (50, -1, 50)",
    ),
    "new column": Constraint(
        "ALTER TABLE t{n} ADD COLUMN c int NOT NULL",
        "(3, 3, 3)",
        "",
        "INSERT INTO t{n} VALUES (50, 50, 50)",
    ),
} | {
    f"foreign key {action}".lower(): Constraint(
        f"ALTER TABLE t{{n}} ADD CONSTRAINT c{{n}} FOREIGN KEY (v) REFERENCES p{{n}} "
        f"ON DELETE {action} ON UPDATE {action}",
        "(3, 4, 3)",
        "(3, 3, 3)",
        "INSERT INTO t{n} VALUES (50, 77, 50)",
    )
    for action in ACTIONS
}

ROWS = {
    "nothing": "SELECT 1",
    "insert": "INSERT INTO t{n} (id, v, w) VALUES (7, 7, 7)",
    "insert equal": "INSERT INTO t{n} (id, v, w) VALUES (7, 2, 2)",
    "insert null": "INSERT INTO t{n} (id, v, w) VALUES (7, NULL, 7)",
    "insert negative": "INSERT INTO t{n} (id, v, w) VALUES (7, -7, 7)",
    "update": "UPDATE t{n} SET w = w + 10 WHERE id = 1",
    "update it": "UPDATE t{n} SET v = 8, w = 8 WHERE id = 3",
    "update it badly": "UPDATE t{n} SET v = 2, w = 2 WHERE id = 3",
    "delete it": "DELETE FROM t{n} WHERE id = 3",
    "delete another": "DELETE FROM t{n} WHERE id = 1",
    "truncate": "TRUNCATE t{n}",
    "change its key": "UPDATE t{n} SET id = 33 WHERE id = 3",
}
TARGETS = {
    "insert a target": "INSERT INTO p{n} VALUES (4), (7)",
    "delete a target": "DELETE FROM p{n} WHERE id = 2",
    "delete a free target": "DELETE FROM p{n} WHERE id = 8",
    "delete a target after its row": "DELETE FROM t{n} WHERE v = 2; DELETE FROM p{n} WHERE id = 2",
    "change a target's key": "UPDATE p{n} SET id = 22 WHERE id = 2",
    "change a free target's key": "UPDATE p{n} SET id = 4 WHERE id = 8",
    "put a target back": "DELETE FROM p{n} WHERE id = 2; UPDATE p{n} SET id = 2 WHERE id = 8",
    "truncate targets": "TRUNCATE p{n}",
}

DIRTY_ORDERS = {
    "plainly": "{write}; {declare}",
    "kept": "SAVEPOINT s; {write}; RELEASE s; {declare}",
    "taken back": "SAVEPOINT s; {write}; ROLLBACK TO s; {declare}",
}
CLEAN_ORDERS = {
    "before": "{write}; {declare}",
    "declared again": "SAVEPOINT s; {declare}; ROLLBACK TO s; {write}; {declare}",
    "after": "{declare}; {write}",
    "after, taken back": "{declare}; SAVEPOINT s; {write}; ROLLBACK TO s",
}

SETUP = (
    "CREATE TABLE p{n} (id int PRIMARY KEY)",
    "CREATE TABLE t{n} (id int PRIMARY KEY, v int DEFAULT 1, w int)",
    "INSERT INTO p{n} VALUES (1), (2), (3), (8)",
    "INSERT INTO t{n} VALUES (1, 1, 1), (2, 2, 2), {row}",
)
LOOKS = ("SELECT id, v, w FROM t{n} ORDER BY id", "SELECT id FROM p{n} ORDER BY id")


class Script(NamedTuple):
    title: str
    setup: list[str]
    steps: list[str]


class Fleet(NamedTuple):
    """Where a block runs, and who looks afterwards."""

    writer: Talk | Oracle
    looker: Talk | Oracle


@pytest.fixture(scope="module", params=["alone", pytest.param("with another", marks=pytest.mark.longer)])
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory: Path = tmp_path_factory.mktemp("fleet")
    with running(directory) as node:
        if request.param == "alone":
            yield _fleet(node, node)
        else:
            with running(directory) as other:
                yield _fleet(node, other)


def _fleet(node: Node, other: Node) -> Fleet:
    return Fleet(Talk(node), Talk(other))


@pytest.mark.invariant("ddl-alike")
@pytest.mark.invariant("completion-checks")
@pytest.mark.invariant("completion-read")
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_rows_and_a_constraint_in_one_block_end_as_in_postgresql(
    fleet: Fleet, oracle: Oracle, name: str
) -> None:
    constraint = CONSTRAINTS[name]
    _require_alike(fleet, oracle, _scripts(constraint, _writes(name)), constraint.probe)


def _writes(constraint: str) -> dict[str, str]:
    """What can matter: rows of t to every kind of constraint, those of p to each action of a foreign key."""
    if constraint == "foreign key no action":
        return ROWS | TARGETS
    return TARGETS if constraint.startswith("foreign key") else ROWS


def _scripts(constraint: Constraint, writes: dict[str, str]) -> Iterator[Script]:
    for write_name, write in writes.items():
        for row, orders in ((constraint.dirty, DIRTY_ORDERS), (constraint.clean, CLEAN_ORDERS)):
            if not row:
                continue
            for order, steps in orders.items():
                setup = [each.replace("{row}", row) for each in SETUP]
                yield Script(
                    f"{write_name}, {order}, {row}",
                    setup,
                    steps.format(write=write, declare=constraint.declare).split("; "),
                )


DROPS = {
    "unique": ("v int CONSTRAINT c{n} UNIQUE", "ALTER TABLE t{n} DROP CONSTRAINT c{n}"),
    "check": ("v int CONSTRAINT c{n} CHECK (v > 0)", "ALTER TABLE t{n} DROP CONSTRAINT c{n}"),
    "not null": ("v int NOT NULL", "ALTER TABLE t{n} ALTER v DROP NOT NULL"),
    "foreign key": (
        "v int CONSTRAINT c{n} REFERENCES p{n} ON DELETE CASCADE",
        "ALTER TABLE t{n} DROP CONSTRAINT c{n}",
    ),
    "column": ("v int UNIQUE", "ALTER TABLE t{n} DROP COLUMN v, ADD COLUMN v int"),
}
DROP_ORDERS = {
    "before": "{write}; {declare}",
    "after": "{declare}; {write}",
    "after, taken back": "{declare}; SAVEPOINT s; {write}; ROLLBACK TO s",
    "dropped, taken back": "SAVEPOINT s; {declare}; {write}; ROLLBACK TO s; {write}",
}


@pytest.mark.invariant("ddl-alike")
@pytest.mark.parametrize("name", DROPS)
def test_a_dropped_constraint_and_rows_that_it_forbade_end_as_in_postgresql(
    fleet: Fleet, oracle: Oracle, name: str
) -> None:
    column, drop = DROPS[name]
    setup = [
        SETUP[0],
        f"CREATE TABLE t{{n}} (id int PRIMARY KEY, {column}, w int)",
        SETUP[2],
        SETUP[3].replace("{row}", "(3, 3, 3)"),
    ]
    writes = ROWS | TARGETS if name == "foreign key" else ROWS
    scripts = (
        Script(f"{write_name}, {order}", setup, steps.format(write=write, declare=drop).split("; "))
        for write_name, write in writes.items()
        for order, steps in DROP_ORDERS.items()
    )
    _require_alike(fleet, oracle, scripts, "INSERT INTO t{n} (id, v, w) VALUES (50, 1, 50)")


def _require_alike(fleet: Fleet, oracle: Oracle, scripts: Iterator[Script], probe: str) -> None:
    oracle.say("SET synchronous_commit = off")
    different: list[str] = []
    for title, setup, steps in scripts:
        n = str(next(_numbers))
        texts = [[each.replace("{n}", n) for each in part] for part in (setup, steps, (*LOOKS, probe))]
        ours, theirs = _outcome(fleet, *texts), _outcome(Fleet(oracle, oracle), *texts)
        if ours != theirs:
            different.append(f"{title}: {'; '.join(steps)}\n  answered {ours}\n  expected {theirs}")
    assert different == [], "\n".join(different)


def _outcome(fleet: Fleet, setup: Sequence[str], steps: Sequence[str], looks: Sequence[str]) -> list[object]:
    """The error that the block ended with, and what is there afterwards."""
    for each in setup:
        assert fleet.writer.say(each).sqlstate == "", each
    error = ""
    for each in ("BEGIN", *steps, "COMMIT"):
        said = fleet.writer.say(each)
        error = "" if each.startswith("ROLLBACK TO") and not said.sqlstate else error or said.sqlstate
    fleet.writer.say("ROLLBACK")
    return [error, *(_gist(fleet.looker.say(each)) for each in looks)]


def _gist(said: Said) -> tuple[object, ...]:
    return said.sqlstate, said.rows
