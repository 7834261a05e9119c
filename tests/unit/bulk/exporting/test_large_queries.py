"""EXPORT of a query with many rows: it runs once, or starts over in another way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.bulk.exporting.records import Rows
from tenure.node import Node
from tenure.sql.clients import exported_rows
from tests.unit.bulk.exporting.exported_files import exported, files
from tests.unit.sql.sessions import Talk


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """How often the rows of a query were asked for, and whether they were again; results are held in part."""
    monkeypatch.setattr("tenure.sql.duck.query_connection.RESULT_BYTES_MAX", 100_000)
    monkeypatch.setattr("tenure.sql.duck.query_connection.FETCH_ROWS", 200)
    asked: list[bool] = []

    def rows_of(*arguments: Any) -> Iterator[Rows]:
        asked.append(arguments[-1])
        return exported_rows.rows_of(*arguments)

    monkeypatch.setattr("tenure.composition.job_layer.rows_of", rows_of)
    return asked


@pytest.fixture(scope="module")
def long(node: Node) -> None:
    talk = Talk(node)
    talk.say("CREATE TABLE long (id int PRIMARY KEY, word text)")
    talk.say("INSERT INTO long SELECT g, repeat('a', 1000) FROM generate_series(1, 19999) g")
    talk.say("INSERT INTO long VALUES (20000, repeat('ß', 1000))")
    talk.close()


@pytest.mark.usefixtures("long")
def test_a_large_query_runs_once(talk: Talk, directory: Path, runs: list[bool]) -> None:
    duck = talk.session.state.services.duck
    assert duck is not None
    taken = duck.offloaded_count
    said = talk.say("EXPORT INTO CSV 'large' FROM SELECT id, word FROM long WHERE word <> 'b'")
    lines = exported(directory, said, "large").decode().splitlines()
    assert [len(line.partition(",")[2]) for line in lines] == [1000] * 20_000
    assert (runs, duck.offloaded_count - taken) == ([False], 1)


@pytest.mark.usefixtures("long")
def test_a_query_that_duckdb_gives_up_late_starts_over(talk: Talk, directory: Path, runs: list[bool]) -> None:
    said = talk.say(
        "EXPORT INTO CSV 'over' WITH chunk_rows = 5000 "
        "FROM SELECT id, upper(word) FROM long WHERE word <> 'b'"
    )
    lines = exported(directory, said, "over").decode().splitlines()
    assert [line.partition(",")[0] for line in lines] == [str(number) for number in range(1, 20_001)]
    assert runs == [False, True]


@pytest.mark.usefixtures("long")
def test_an_error_late_in_a_large_query_leaves_no_file(talk: Talk, directory: Path, runs: list[bool]) -> None:
    said = talk.say(
        "EXPORT INTO CSV 'late' WITH chunk_rows = 5000 "
        "FROM SELECT 1 / (20000 - id), word FROM long WHERE word <> 'b'"
    )
    assert (said.sqlstate, said.message) == ("22012", "division by zero")
    assert not files(directory, "late")
    assert runs == [False, True]
