"""What was once answered wrongly is answered as PostgreSQL answers it, by both executors, or refused."""

from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.comparison import Verdict, verdict
from tests.differential.run import Run, both_sides
from tests.differential.sides import Side, Statement
from tests.postgres_server import Server

STATEMENTS = (Path(__file__).parent / "known.sql").read_text().splitlines()
"""One a line; behind it stand parameters, -- given ['1'], or what COPY is given, -- copied 'x'."""


@pytest.fixture(scope="module")
def sides(postgres: Server) -> Iterator[tuple[Side, Side]]:
    with both_sides(postgres) as (ours, theirs):
        Run(ours, theirs, 5).create()
        yield ours, theirs


@pytest.mark.parametrize("executor", ["rows", "duckdb"])
def test_what_once_was_wrong_is_answered_as_in_postgres(sides: tuple[Side, Side], executor: str) -> None:
    ours, theirs = sides
    ours.must(f"SET tenure.executor = '{executor}'")
    differing = []
    for line in STATEMENTS:
        text, _, copied = line.partition(" -- copied ")
        text, _, given = text.partition(" -- given ")
        parameters = tuple(literal_eval(given)) if given else ()
        statement = Statement(text, parameters, copied=literal_eval(copied) if copied else "")
        for side in sides:
            side.must("BEGIN")
        mine, other = ours.ask(statement), theirs.ask(statement)
        for side in sides:
            side.must("ROLLBACK")
        if verdict(statement, mine, other) not in (Verdict.SAME, Verdict.REFUSED):
            differing.append(f"{line}\n    {mine.shown}\n    {other.shown}")
    assert differing == []
