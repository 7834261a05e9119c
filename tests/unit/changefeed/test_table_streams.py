"""One table's changes: scans, watches, schema changes, gaps."""

import pytest

from tenure.base.timestamp import to_text
from tenure.changefeed import table_stream
from tests.unit.changefeed.feeding import Feeding, after


def test_rows_of_the_initial_scan_come_before_changes(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b text)")
    feeding.done("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    with feeding.feed() as feed:
        assert after(feed.catch_up()) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
        feeding.done("UPDATE t SET b = 'z' WHERE a = 1")
        feeding.done("DELETE FROM t WHERE a = 2")
        changes = feed.catch_up()
        assert after(changes) == [{"a": 1, "b": "z"}, None]
        assert changes[1]["key"] == [2]
        feed.compare()


@pytest.mark.invariant("I35")
def test_every_revision_after_a_cursor_is_emitted(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    with feeding.feed(no_initial_scan=None) as feed:
        for number in range(3):
            feeding.done(f"UPSERT INTO t VALUES (1, {number})")
        assert after(feed.catch_up()) == [{"a": 1, "b": number} for number in range(3)]


def test_a_row_is_read_with_the_schema_of_its_time(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    with feeding.feed(no_initial_scan=None, schema_change_policy="nobackfill") as feed:
        feeding.done("INSERT INTO t VALUES (1)")
        feeding.done("ALTER TABLE t ADD COLUMN b int DEFAULT 7")
        feeding.done("INSERT INTO t VALUES (2)")
        feeding.done("ALTER TABLE t RENAME COLUMN b TO c")
        feeding.done("INSERT INTO t VALUES (3)")
        feeding.done("ALTER TABLE t DROP COLUMN c")
        feeding.done("INSERT INTO t VALUES (4)")
        assert after(feed.catch_up()) == [{"a": 1}, {"a": 2, "b": 7}, {"a": 3, "c": 7}, {"a": 4}]


def test_backfill_emits_all_rows_again_when_old_rows_look_different(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("INSERT INTO t VALUES (1), (2)")
    with feeding.feed() as feed:
        feed.catch_up()
        feeding.done("ALTER TABLE t ADD COLUMN b int DEFAULT 7")
        assert after(feed.catch_up()) == [{"a": 1, "b": 7}, {"a": 2, "b": 7}]
        feeding.done("ALTER TABLE t ADD COLUMN c int")
        assert feed.catch_up() == []
        feeding.done("ALTER TABLE t ALTER COLUMN b TYPE text")
        assert after(feed.catch_up()) == [{"a": 1, "b": "7", "c": None}, {"a": 2, "b": "7", "c": None}]
        feeding.done("ALTER TABLE t DROP COLUMN b")
        assert after(feed.catch_up()) == [{"a": 1, "c": None}, {"a": 2, "c": None}]
        feed.compare()


def test_a_renamed_column_emits_no_row_again(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("INSERT INTO t VALUES (1, 2)")
    with feeding.feed() as feed:
        feed.catch_up()
        feeding.done("ALTER TABLE t RENAME COLUMN b TO c")
        assert feed.catch_up() == []
        feeding.done("INSERT INTO t VALUES (3, 4)")
        assert after(feed.catch_up()) == [{"a": 3, "c": 4}]


def test_a_feed_that_stops_at_schema_changes_stops_at_a_renamed_column(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    with feeding.feed(schema_change_policy="stop") as feed:
        feeding.done("ALTER TABLE t RENAME COLUMN b TO c")
        while feed.feed.ending is None:
            feed.feed.step()
        assert "rename column" in str(feed.feed.ending)


def test_ddl_events_stand_between_the_rows_before_and_after(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    with feeding.feed(ddl_events=None, no_initial_scan=None) as feed:
        feeding.done("INSERT INTO t VALUES (1)")
        feeding.done("ALTER TABLE t ADD COLUMN b varchar(3)")
        feeding.done("INSERT INTO t VALUES (2, 'x')")
        before, event, row = feed.catch_up()
        assert (before["after"], row["after"]) == ({"a": 1}, {"a": 2, "b": "x"})
        ddl = event["ddl"]
        assert (ddl["table"], ddl["events"]) == ("t", ["add column"])
        assert ddl["columns"] == [
            {"name": "a", "type": "integer"},
            {"name": "b", "type": "character varying(3)"},
        ]
        assert before["updated"] < event["updated"] < row["updated"]
        feeding.done("GRANT SELECT ON t TO public")
        assert feed.catch_up() == []


def test_truncate_deletes_every_row(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("INSERT INTO t VALUES (1), (2)")
    with feeding.feed() as feed:
        feed.catch_up()
        feeding.done("TRUNCATE t")
        assert [each["key"] for each in feed.catch_up()] == [[1], [2]]
        feeding.done("INSERT INTO t VALUES (5)")
        assert after(feed.catch_up()) == [{"a": 5}]
        feed.compare()


def test_a_table_that_is_emptied_and_filled_in_one_block_shows_the_difference(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    with feeding.feed() as feed:
        feed.catch_up()
        for statement in ("BEGIN", "TRUNCATE t", "INSERT INTO t VALUES (2, 2), (3, 4), (5, 5)", "COMMIT"):
            feeding.done(statement)
        changes = [(each["key"], each["after"] and each["after"]["b"]) for each in feed.catch_up()]
        assert changes == [([1], None), ([3], 4), ([5], 5)]
        feed.compare()


def test_a_new_primary_key_moves_every_row_to_its_new_key(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL)")
    feeding.done("INSERT INTO t VALUES (1, 10), (2, 20)")
    with feeding.feed(schema_change_policy="nobackfill") as feed:
        feed.catch_up()
        feeding.done("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (b)")
        changes = feed.catch_up()
        assert [(each["key"], each["after"] is None) for each in changes] == [
            ([1], True),
            ([2], True),
            ([10], False),
            ([20], False),
        ]
        feed.compare()


def test_rewrites_of_a_fill_that_readers_do_not_see_are_not_emitted(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("INSERT INTO t VALUES (1, 10), (2, 20)")
    with feeding.feed(schema_change_policy="nobackfill") as feed:
        feed.catch_up()
        feeding.done("ALTER TABLE t ADD COLUMN c int GENERATED ALWAYS AS (b + 1) STORED")
        feeding.done("UPDATE t SET b = 30 WHERE a = 2")
        assert after(feed.catch_up()) == [{"a": 2, "b": 30, "c": 31}]


def test_a_feed_with_the_policy_stop_ends_before_the_change(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    with feeding.feed(schema_change_policy="stop") as feed:
        feed.catch_up()
        feeding.done("INSERT INTO t VALUES (1)")
        feeding.done("ALTER TABLE t ADD COLUMN b int")
        feeding.done("INSERT INTO t VALUES (2)")
        feeding.done("ALTER TABLE t ADD COLUMN c int DEFAULT 1")
        version = feeding.table("t")
        feeding.done("INSERT INTO t VALUES (3)")
        while feed.feed.ending is None:
            feed.feed.step()
        assert [each.key for each in feed.sink.messages] == ["[1]", "[2]"]
        assert feed.feed.ending.sqlstate == "55000"
        assert feed.feed.position.resolved_at < version.modified_at


def test_a_feed_ends_at_its_end_time(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("INSERT INTO t VALUES (1)")
    start_at = feeding.now()
    feeding.done("INSERT INTO t VALUES (2)")
    end_at = feeding.now()
    feeding.done("INSERT INTO t VALUES (3)")
    with feeding.feed(cursor=to_text(start_at), end_time=to_text(end_at)) as feed:
        assert after(feed.catch_up()) == [{"a": 2}]
        assert feed.feed.is_done


def test_a_table_that_is_scanned_holds_back_no_other(
    feeding: Feeding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_stream, "PAGE_ROWS", 1)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("CREATE TABLE u (a int PRIMARY KEY)")
    feeding.done("INSERT INTO t SELECT generate_series(1, 50)")
    with feeding.feed("t", "u") as feed:
        for _ in range(3):
            feed.feed.step()
        feeding.done("INSERT INTO u VALUES (7)")
        feed.feed.step()
        assert [each.key for each in feed.sink.messages if each.topic == "u"] == ["[7]"]
        assert feed.feed.position.resolved_at == 0


def test_rows_of_a_column_with_an_enum_have_their_labels(feeding: Feeding) -> None:
    feeding.done("CREATE TYPE mood AS ENUM ('sad')")
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, m mood)")
    with feeding.feed(no_initial_scan=None) as feed:
        feeding.done("INSERT INTO t VALUES (1, 'sad')")
        feeding.done("ALTER TYPE mood ADD VALUE 'glad'")
        feeding.done("INSERT INTO t VALUES (2, 'glad')")
        assert [each["after"]["m"] for each in feed.catch_up()] == ["sad", "glad"]


@pytest.mark.invariant("I35")
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("change", ["ADD COLUMN c int DEFAULT 5", "DROP COLUMN b", "RENAME COLUMN b TO c"])
def test_a_deletion_in_the_block_of_a_schema_change_is_emitted(
    feeding: Feeding, change: str, restarts: bool
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("INSERT INTO t VALUES (1, 1), (2, 2)")
    with feeding.feed() as feed:
        feed.catch_up()
        feeding.done("BEGIN")
        feeding.done("DELETE FROM t WHERE a = 1")
        feeding.done("UPDATE t SET a = 3 WHERE a = 2")
        feeding.done(f"ALTER TABLE t {change}")
        feeding.done("COMMIT")
        feed.catch_up(restarts=restarts)
        feed.compare()
