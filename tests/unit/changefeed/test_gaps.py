"""Changes that a watch cannot give any more: they were flushed to the lake, or came by an import."""

from pathlib import Path

import pytest

from tests.unit.changefeed.feeding import Feeding, after


@pytest.mark.parametrize("restarts", [False, True])
def test_flushed_changes_are_read_from_the_lake(feeding: Feeding, restarts: bool) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    with feeding.feed() as feed:
        feed.catch_up()
        feeding.done("UPDATE t SET b = 1 WHERE a = 1")
        feeding.done("UPDATE t SET b = 2 WHERE a = 1")
        feeding.done("DELETE FROM t WHERE a = 2")
        feeding.flush()
        feeding.done("UPDATE t SET b = 3 WHERE a = 3")
        changes = feed.catch_up(restarts=restarts)
        assert [(each["key"], each["after"] and each["after"]["b"]) for each in changes] == [
            ([1], 1),
            ([1], 2),
            ([2], None),
            ([3], 3),
        ]
        feed.compare()


@pytest.mark.parametrize("restarts", [False, True])
def test_flushed_changes_are_read_with_the_schema_of_their_time(feeding: Feeding, restarts: bool) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    with feeding.feed(schema_change_policy="nobackfill") as feed:
        feed.catch_up()
        feeding.done("INSERT INTO t VALUES (1)")
        feeding.done("ALTER TABLE t ADD COLUMN b int DEFAULT 7")
        feeding.done("INSERT INTO t VALUES (2)")
        feeding.done("ALTER TABLE t RENAME COLUMN b TO c")
        feeding.flush()
        feeding.done("INSERT INTO t VALUES (3)")
        changes = feed.catch_up(restarts=restarts)
        assert after(changes) == [{"a": 1}, {"a": 2, "b": 7}, {"a": 3, "c": 7}]


@pytest.mark.parametrize("restarts", [False, True])
def test_rows_of_an_import_are_emitted(feeding: Feeding, directory: Path, restarts: bool) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b text)")
    feeding.done("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    with feeding.feed() as feed:
        feed.catch_up()
        feeding.done("UPDATE t SET b = 'new' WHERE a = 1")
        (directory / "files" / f"{feeding.schema}.csv").write_text("5,five\n6,six\n")
        feeding.done(f"IMPORT INTO t CSV DATA ('{feeding.schema}.csv')")
        feeding.done("INSERT INTO t VALUES (7, 'seven')")
        changes = feed.catch_up(restarts=restarts)
        assert [each["key"] for each in changes] == [[1], [5], [6], [7]]
        feed.compare()
