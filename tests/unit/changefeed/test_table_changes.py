"""table_changes(table, after, until): the changes of a table as rows of a query."""

import pytest

from tests.unit.changefeed.feeding import Feeding

CHANGES = "SELECT operation, key, before, after FROM table_changes('t', '{}', '{}')"


def moment(feeding: Feeding) -> str:
    (((at,),)) = feeding.rows("SELECT cluster_logical_timestamp()")
    assert at is not None
    return at


@pytest.fixture
def began(feeding: Feeding) -> str:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b numeric)")
    feeding.done("INSERT INTO t VALUES (1, 1.50)")
    return moment(feeding)


def test_every_change_between_the_times_is_there(feeding: Feeding, began: str) -> None:
    feeding.done("INSERT INTO t VALUES (2, 2)")
    feeding.done("UPDATE t SET b = b + 1 WHERE a = 1")
    feeding.done("DELETE FROM t WHERE a = 2")
    until = moment(feeding)
    feeding.done("INSERT INTO t VALUES (3, 3)")
    assert feeding.rows(CHANGES.format(began, until)) == [
        ("insert", "[2]", None, '{"a": 2, "b": 2}'),
        ("update", "[1]", '{"a": 1, "b": 1.50}', '{"a": 1, "b": 2.50}'),
        ("delete", "[2]", '{"a": 2, "b": 2}', None),
    ]


def test_the_first_time_is_outside_and_the_second_inside(feeding: Feeding, began: str) -> None:
    feeding.done("INSERT INTO t VALUES (2, 2)")
    feeding.done("INSERT INTO t VALUES (3, 3)")
    until = moment(feeding)
    (first, _), (second, _) = feeding.rows(
        f"SELECT changed_at, key FROM table_changes('t', {began}, {until})"
    )
    rows = feeding.rows(f"SELECT key FROM table_changes('t', {first}, {second})")
    assert rows == [("[3]",)]


def test_rows_are_shown_with_the_schema_of_their_time(feeding: Feeding, began: str) -> None:
    feeding.done("ALTER TABLE t RENAME COLUMN b TO c")
    feeding.done("UPDATE t SET c = 7 WHERE a = 1")
    feeding.done("ALTER TABLE t ADD COLUMN d text DEFAULT 'x'")
    feeding.done("INSERT INTO t VALUES (2, 8)")
    rows = feeding.rows(CHANGES.format(began, moment(feeding)))
    assert [row[3] for row in rows] == ['{"a": 1, "c": 7}', '{"a": 2, "c": 8, "d": "x"}']


def test_truncate_and_rewrites_are_changes_of_each_row(feeding: Feeding, began: str) -> None:
    feeding.done("TRUNCATE t")
    feeding.done("INSERT INTO t VALUES (5, 5)")
    assert feeding.rows(CHANGES.format(began, moment(feeding))) == [
        ("delete", "[1]", '{"a": 1, "b": 1.50}', None),
        ("insert", "[5]", None, '{"a": 5, "b": 5}'),
    ]


def test_it_can_be_joined_and_counted(feeding: Feeding, began: str) -> None:
    for number in range(2, 6):
        feeding.done(f"INSERT INTO t VALUES ({number}, 0)")
    until = moment(feeding)
    assert feeding.rows(
        f"SELECT count(*), max(t.a) FROM table_changes('t', '{began}', '{until}') AS c"
        " JOIN t ON t.a = (c.key->>0)::int"
    ) == [("4", "5")]


def test_what_has_moved_to_the_lake_is_there(feeding: Feeding, began: str) -> None:
    feeding.done("INSERT INTO t VALUES (2, 2)")
    feeding.done("UPDATE t SET b = 3 WHERE a = 2")
    until = moment(feeding)
    feeding.flush()
    rows = feeding.rows(f"SELECT after FROM table_changes('t', '{began}', '{until}')")
    assert rows == [('{"a": 2, "b": 2}',), ('{"a": 2, "b": 3}',)]


def test_it_needs_select(feeding: Feeding, began: str) -> None:
    role = f"r_{feeding.schema}"
    feeding.done(f"CREATE ROLE {role}")
    feeding.done(f"GRANT USAGE ON SCHEMA {feeding.schema} TO {role}")
    feeding.done(f"GRANT SELECT (a) ON t TO {role}")
    asked = CHANGES.format(began, moment(feeding))
    feeding.done(f"SET ROLE {role}")
    refused = feeding.talk.say(asked)
    feeding.done("RESET ROLE")
    feeding.done(f"GRANT SELECT ON t TO {role}")
    feeding.done(f"SET ROLE {role}")
    allowed = feeding.talk.say(asked)
    feeding.done("RESET ROLE")
    assert (refused.sqlstate, allowed.sqlstate) == ("42501", "")


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [
        ("'t', '2001-01-01', '{now}'", "42P01"),
        ("'t', '{now}', '1'", "22023"),
        ("'t', '{now}', '9999-01-01'", "22023"),
        ("'nothing', '{now}', '{now}'", "42P01"),
        ("'pg_class', '{now}', '{now}'", "42809"),
    ],
)
def test_what_cannot_be_told_is_refused(feeding: Feeding, began: str, arguments: str, sqlstate: str) -> None:
    said = feeding.talk.say(f"SELECT * FROM table_changes({arguments.format(now=began)})")
    assert said.sqlstate == sqlstate
