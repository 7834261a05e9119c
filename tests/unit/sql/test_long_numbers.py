"""Numbers of thousands of digits, which Python does not convert, get PostgreSQL's errors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.sql.talking import Speaker, a_node

LONG = "1" * 6_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with a_node(Path(tmp_path_factory.mktemp("numbers"))) as node:
        yield node


@pytest.fixture
def one(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    yield speaker
    speaker.close()


def test_a_long_number_is_a_numeric(one: Speaker) -> None:
    assert one.rows(f"SELECT length(({LONG})::text), length((-{LONG})::text)") == [(6_000, 6_001)]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        (f"SELECT '{LONG}'::regclass", "22003"),
        ("SELECT '99999999999'::regtype", "22003"),
        ("SELECT '٣'::regclass", "42P01"),
        (f"SELECT 1 LIMIT {LONG}", "22003"),
        (f"SHOW JOB {LONG}", "22003"),
        (f"CANCEL JOB {LONG}", "22003"),
        (f"CREATE SEQUENCE numbers START {LONG}", "22003"),
        ("CREATE SEQUENCE numbers START 1.5", "22P02"),
        (f"SET statement_timeout = {LONG}", "22023"),
        (f"SET CLUSTER SETTING gc.interval = '{LONG}s'", "22023"),
        (f"ALTER RANGE DEFAULT CONFIGURE ZONE USING gc.ttlseconds = {LONG}", "22003"),
    ],
)
def test_a_long_number_that_does_not_fit_is_refused(one: Speaker, text: str, sqlstate: str) -> None:
    assert one.refused(text) == sqlstate
