"""A few statements of the corpus, sent by a client: all end, and another client is served meanwhile."""

from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from tests.limits.over_the_wire import ENDS_SECONDS_MAX, beating, run, subjects
from tests.unit.sql.served import serving

GENEROUS = 10
"""The machine may have other work."""

LONG = (
    "SELECT repeat('a', 3000000) ~~ repeat('a_', 20000) || '%b%'",
    "SELECT length(regexp_replace(repeat('ab', 3000000), '(a)(b)', '\\2\\1', 'g'))",
    "SELECT jsonb_pretty(('[' || repeat('1,', 3000000) || '1]')::jsonb)",
    "SELECT string_to_array(repeat('é,', 6000000), ',', 'x') = ARRAY['a']",
    "SELECT to_char(now(), repeat('YYYY ', 20000)) || to_char(1, repeat('9', 100000))",
    "SELECT array_sort(string_to_array(repeat('a,b,c,', 800000), ','))",
)


def test_statements_end_with_their_time_and_others_are_served(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        with served.connect() as client, beating(served) as beats:
            client.execute("SET statement_timeout = '300ms'")
            codes = {_sqlstate(client, statement) for statement in LONG}
        assert "57014" in codes
        assert codes <= {"57014", "54000", "53200", ""}  # a fast machine answers some of them
        assert len(beats) > len(LONG)
        assert max(beats) < GENEROUS * ENDS_SECONDS_MAX


def _sqlstate(client: "psycopg.Connection[Any]", statement: str) -> str:
    try:
        client.execute(statement.encode())
    except psycopg.Error as error:
        return error.sqlstate or ""
    return ""


def test_a_sample_of_all_functions_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        outcome = run(served, Random(1).sample(subjects(), 40), size=100_000, calls=1, seed=1)
    assert [each for each in outcome.late if each.seconds > GENEROUS * ENDS_SECONDS_MAX] == []
    assert outcome.calls == 40


def test_a_parameter_is_read_within_its_time(tmp_path: Path) -> None:
    text = "[" + "1, " * 400_000 + "1]"
    with serving(tmp_path) as served, served.connect() as client:
        client.execute("SET statement_timeout = '1ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute("SELECT $1::jsonb IS NULL".replace("$1", "%s"), [text])
        client.execute("SET statement_timeout = 0")
        assert client.execute("SELECT jsonb_array_length(%s::jsonb)", [text]).fetchone() == (400_001,)
