"""Filling an index by a merge over PostgreSQL: whoever looked before is refused there too."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tenure.pipeline import remote_handles
from tests.postgres_server import Server
from tests.unit.bulk.fills import Filling, filling_node


@pytest.fixture
def t(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filling]:
    monkeypatch.setattr("tenure.schema_change.changer.ALONE_ROWS_MAX", 0)
    name = f"filling_{uuid4().hex[:12]}"
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with filling_node(tmp_path, f"postgresql://postgres@127.0.0.1:{postgres.port}/{name}") as node:
        made = Filling(node, tmp_path)
        made.done("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
        made.done("CREATE TABLE t (id int PRIMARY KEY, a int)")
        made.done("INSERT INTO t SELECT g, g * 7 FROM generate_series(1, 100) g")
        yield made
        made.talk.close()
        assert node.lake is not None
        remote_handles.close(node.lake.place)


def test_what_is_written_meanwhile_counts(t: Filling) -> None:
    with t.during("CREATE UNIQUE INDEX i ON t (a)") as statement:
        t.done("INSERT INTO t VALUES (1000, 7), (1001, 1001)")
        t.done("DELETE FROM t WHERE id IN (1000, 2)")
        t.done("UPDATE t SET a = a + 1 WHERE id > 90")
        writer = t.session()
        assert not writer.say("BEGIN").sqlstate
        assert not writer.say("INSERT INTO t VALUES (1002, 21)").sqlstate
    assert not statement.said().sqlstate
    assert writer.say("COMMIT").sqlstate == "40001"
    writer.close()
    assert t.filled_rows() == [100]
    assert t.wrong() == []
    t.flush(cleans=True)
    assert t.wrong() == []
