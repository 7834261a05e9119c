"""Roles, objects, statements and routes to run them, against a model of privileges and against PostgreSQL."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.unit.sql.sessions import ROLE, Oracle, Talk, running
from tests.unit.sql.statements.ddl.rights_model import (
    OUR_ROUTES,
    REQUESTS,
    ROLES,
    Request,
    World,
    drawn,
    routes,
)

SEEDS = range(3)


class Sides(NamedTuple):
    talk: Talk
    oracle: Oracle
    world: World


@pytest.fixture(scope="module", params=SEEDS)
def sides(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, oracle: Oracle
) -> Iterator[Sides]:
    world = drawn(request.param)
    _drop_all(oracle)
    with running(tmp_path_factory.mktemp("matrix")) as node:
        talk = Talk(node)
        for statement in world.statements():
            for side in (talk, oracle):
                said = side.say(_named(statement))
                assert said.sqlstate == "", (statement, said)
        yield Sides(talk, oracle, world)
        talk.close()
    _drop_all(oracle)


def _drop_all(oracle: Oracle) -> None:
    for role in ROLES:
        oracle.say(_named(f"DROP OWNED BY {role} CASCADE"))
    oracle.start_over()


def _named(text: str) -> str:
    return text.replace("role_", ROLE)


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case.text)
def test_every_route_asks_for_the_same_rights(sides: Sides, case: Request) -> None:
    wrong = []
    for role in ROLES:
        expected = sides.world.may(role, case)
        for route, statements in routes(case).items():
            ours = _sqlstate(sides.talk, role, statements, case.text)
            theirs = ours if route in OUR_ROUTES else _sqlstate(sides.oracle, role, statements, case.text)
            # One that is let may fail for another reason, on both sides for the same.
            if ours != theirs or (ours != "42501") != expected:
                wrong.append((role, route, expected, ours, theirs))
    assert wrong == []


def _sqlstate(side: Talk | Oracle, role: str, statements: tuple[str, ...], text: str) -> str:
    """Of the first statement that fails, in a transaction that is taken back."""
    side.say("BEGIN")
    side.say(_named(f"SET LOCAL ROLE {role}"))
    found = ""
    for each in statements:
        found = found or side.say(_named(each.format(text, role))).sqlstate
    side.say("ROLLBACK")
    side.say("DEALLOCATE ALL")
    return found


def test_the_worlds_let_and_refuse() -> None:
    """Each request is let to somebody and refused to somebody, so that the matrix tells the two apart."""
    for case in REQUESTS:
        assert {world.may(role, case) for world in map(drawn, SEEDS) for role in ROLES} == {True, False}
