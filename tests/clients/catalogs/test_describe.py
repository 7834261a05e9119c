"""psql's describe commands: the same output from a node as from PostgreSQL."""

import pytest

from tests.clients.catalogs.world import Side

SAME = (
    *(r"\dt", r"\d", r"\d users", r"\d+ users", r"\d app.orders", r"\d+ app.orders", r"\d pair", r"\d sub"),
    *(
        r'\d "Odd name"',
        r"\d users_email_idx",
        r"\d users_part_idx",
        r"\d users_pkey",
        r"\d rich",
        r"\d counter",
    ),
    *(r"\d users_id_seq", r"\di", r"\ds", r"\dv", r"\dT", r"\dT+", r"\df", r"\dp users", r"\ddp", r"\dD"),
    *(
        r"\dE",
        r"\dt app.*",
        r"\drds",
        r"\db",
        r"\dn app",
        r"\dn+ app",
        r"\dm",
        r"\dP",
        r"\dy",
        r"\dd",
    ),
    *(r"\d nothing", r"\dt no*thing", r"\d *.pair"),
)


@pytest.mark.parametrize("command", SAME)
def test_a_describe_command_gives_what_postgresql_gives(ours: Side, theirs: Side, command: str) -> None:
    assert ours.psql(command) == theirs.psql(command)


@pytest.mark.parametrize(
    "command", [r"\l", r"\du", r"\dn", r"\dg", r"\dL", r"\dx", r"\dA", r"\do", r"\da", r"\dC"]
)
def test_a_describe_command_of_what_differs_gives_an_answer(ours: Side, command: str) -> None:
    assert "ERROR" not in ours.psql(command)


@pytest.mark.parametrize("command", [r"\dt+", r"\di+", r"\dv+"])
def test_sizes_are_not_known_but_all_else_is_listed(ours: Side, command: str) -> None:
    assert "ERROR" not in ours.psql(command)


def test_databases_and_roles_are_listed(ours: Side) -> None:
    assert "defaultdb|SUPERUSER|UTF8" in ours.psql(r"\l")
    assert "reader|Cannot login" in ours.psql(r"\du")
