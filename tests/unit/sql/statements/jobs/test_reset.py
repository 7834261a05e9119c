"""ALTER TABLE ... RESET TO under the present schema: by a transaction and by a job, with the same result."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.timestamp import to_text
from tenure.node import Node
from tenure.sql.statements.jobs import resetting
from tests.unit.bulk.imports import Importing
from tests.unit.bulk.resets import Resetting
from tests.unit.lake_nodes import lake_node
from tests.unit.sql.sessions import Talk, running


@pytest.fixture(scope="module", params=["store", "lake", "job"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Without a lake, with one, and with one where a single row is many: then a job does it."""
    directory = tmp_path_factory.mktemp("reset")
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "job":
            patched.setattr(resetting, "TRANSACTION_ROWS_MAX", 0)
        with running(directory) if request.param == "store" else lake_node(directory) as node:
            yield node


@pytest.fixture
def t(node: Node, tmp_path: Path) -> Iterator[Resetting]:
    importing = Importing(node, tmp_path)
    yield Resetting(importing)
    importing.talk.close()


def test_rows_become_what_they_were(t: Resetting) -> None:
    t.done("CREATE TABLE t (id int PRIMARY KEY, a text, u int UNIQUE)")
    t.done("CREATE INDEX ON t (a)")
    t.done("INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30), (4, NULL, NULL)")
    at = t.now()
    t.done("DELETE FROM t WHERE id = 1")
    t.done("UPDATE t SET u = u + 100, a = upper(a) WHERE id IN (2, 3)")
    t.done("INSERT INTO t VALUES (5, 'five', 10)")
    between = t.now()
    t.reset(at)
    assert t.rows() == t.history[at]
    t.check()
    t.reset(between)
    assert t.rows() == t.history[between]
    t.check()


@pytest.mark.parametrize("node", ["store", "lake"], indirect=True)
def test_a_row_that_has_not_changed_keeps_its_time(t: Resetting) -> None:
    t.done("CREATE TABLE t (id int PRIMARY KEY, a int)")
    t.done("INSERT INTO t VALUES (1, 1), (2, 2)")
    at = t.now()
    t.done("UPDATE t SET a = 3 WHERE id = 1")
    t.done("UPDATE t SET a = 9 WHERE id = 2")
    t.done("UPDATE t SET a = 2 WHERE id = 2")
    writes = t.importing.node.store.snapshot().at
    t.reset(at)
    ((table,),) = t.rows("SELECT 't'::regclass::oid::int8")
    store = t.importing.node.store
    span = store.keyspace.index_span(int(table or 0), 1)
    assert len(store.snapshot().diff(span, since_at=writes)) == 1
    t.reset(at)
    assert len(store.snapshot().diff(span, since_at=writes)) == 1


@pytest.mark.parametrize("seed", range(4))
def test_any_of_many_times(t: Resetting, seed: int) -> None:
    rng = random.Random(seed)
    t.done("CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE, b text)")
    t.done("CREATE INDEX part ON t (b) WHERE a > 5")
    times = [t.now()]
    for _ in range(25):
        id, other = rng.randrange(8), rng.randrange(12)
        match rng.randrange(5):
            case 0:
                t.say(f"INSERT INTO t VALUES ({id}, {other}, 'x{other}')")
            case 1:
                t.say(f"UPDATE t SET a = {other}, b = 'y{id}' WHERE id = {id}")
            case 2:
                t.say(f"DELETE FROM t WHERE id = {id}")
            case 3:
                t.say(f"UPDATE t SET id = {other} WHERE id = {id}")
            case _:
                at = rng.choice(times)
                t.reset(at)
                assert t.rows() == t.history[at]
        times.append(t.now())
    t.check()


def test_tables_without_a_primary_key(t: Resetting) -> None:
    at = t.reset_after(
        ["CREATE TABLE t (a int, b text)", "INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, NULL)"],
        ["DELETE FROM t WHERE a = 1", "INSERT INTO t VALUES (3, 'z')"],
    )
    assert t.rows() == t.history[at]
    t.check()


def test_values_that_look_different_are_taken_back(t: Resetting) -> None:
    at = t.reset_after(
        [
            "CREATE TABLE t (id int PRIMARY KEY, f float8, n numeric, j jsonb, a int[])",
            "INSERT INTO t VALUES (1, '-0', 1.0, '{\"a\": 1}', '{1,2}'), (2, 'NaN', 'NaN', 'null', '{}')",
        ],
        [
            "UPDATE t SET f = 0, n = 1.00 WHERE id = 1",
            "UPDATE t SET f = 1, n = 2, j = NULL, a = NULL WHERE id = 2",
        ],
    )
    assert t.rows() == t.history[at]
    t.check()


# ── the schema has changed since ───────────────────────────────────────────────────────────────


def test_columns_that_came_later_have_what_rows_of_then_got(t: Resetting) -> None:
    t.reset_after(
        ["CREATE TABLE t (id int PRIMARY KEY, a int)", "INSERT INTO t VALUES (1, 1), (2, 2)"],
        [
            "ALTER TABLE t ADD COLUMN b int DEFAULT 7",
            "ALTER TABLE t ADD COLUMN c int DEFAULT 8",
            "ALTER TABLE t ADD COLUMN d int",
            "ALTER TABLE t ADD COLUMN e int GENERATED ALWAYS AS (a * 10) STORED",
            "ALTER TABLE t ALTER COLUMN c SET DEFAULT 9",
            "CREATE INDEX ON t (b)",
            "UPDATE t SET b = 1, c = 1, d = 1, a = 5",
        ],
    )
    assert t.rows() == [("1", "1", "7", "8", None, "10"), ("2", "2", "7", "8", None, "20")]
    t.check_indexes()


def test_columns_that_were_renamed_or_dropped(t: Resetting) -> None:
    t.reset_after(
        [
            "CREATE TABLE t (id int PRIMARY KEY, a int, b text, c text)",
            "INSERT INTO t VALUES (1, 1, 'b', 'c')",
        ],
        [
            "ALTER TABLE t RENAME COLUMN a TO reset",
            "ALTER TABLE t DROP COLUMN b",
            "ALTER TABLE t DROP COLUMN c",
            "ALTER TABLE t ADD COLUMN c text DEFAULT 'new'",
            "UPDATE t SET reset = 2, c = 'other'",
        ],
    )
    assert t.rows() == [("1", "1", "c")]
    t.done("ALTER TABLE t RENAME reset TO a")
    t.check_indexes()


def test_types_that_were_widened_are_kept_and_others_refused(t: Resetting) -> None:
    at = t.reset_after(
        [
            "CREATE TABLE t (id int PRIMARY KEY, a varchar(3), b text)",
            "INSERT INTO t VALUES (1, 'abc', '12')",
        ],
        ["ALTER TABLE t ALTER COLUMN a TYPE varchar(10)", "UPDATE t SET a = 'abcdefgh'"],
    )
    assert t.rows() == [("1", "abc", "12")]
    t.done("ALTER TABLE t ALTER COLUMN b TYPE int USING b::int")
    assert t.refused(at) == "42804"
    assert 'column "b"' in t.say(f"ALTER TABLE t RESET TO SYSTEM TIME '{at}'").message


@pytest.mark.parametrize("key", ["PRIMARY KEY", "NOT NULL"])
def test_a_column_that_is_there_again_gets_its_values_in_rows_that_nobody_has_written(
    t: Resetting, key: str
) -> None:
    t.reset_after(
        [
            f"CREATE TABLE t (id int {key}, a int, b text)",
            "INSERT INTO t VALUES (1, 1, 'b'), (2, 2, 'c'), (3, 3, NULL)",
        ],
        [
            "ALTER TABLE t DROP COLUMN b",
            "UPDATE t SET a = 9 WHERE id = 1",
            "ALTER TABLE t ADD COLUMN b text",
        ],
    )
    assert t.rows() == [("1", "1", "b"), ("2", "2", "c"), ("3", "3", None)]
    t.check_indexes()


def test_a_column_of_another_type_is_refused_if_it_was_renamed(t: Resetting) -> None:
    t.done("CREATE TABLE t (id int PRIMARY KEY, a numeric)")
    t.done("INSERT INTO t VALUES (1, 1.5)")
    at = t.now()
    t.done("ALTER TABLE t RENAME COLUMN a TO b")
    t.done("ALTER TABLE t ALTER COLUMN b TYPE int")
    t.done("ALTER TABLE t ADD COLUMN a numeric")
    assert t.refused(at) == "42804"
    assert t.rows() == [("1", "2", None)]


def test_a_table_that_was_emptied_or_has_another_primary_key(t: Resetting) -> None:
    at = t.reset_after(
        [
            "CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL)",
            "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        ],
        ["TRUNCATE t", "INSERT INTO t VALUES (2, 20), (3, 31), (4, 40)"],
    )
    assert t.rows() == t.history[at]
    t.check()
    t.done("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a)")
    t.done("UPDATE t SET a = a + 1")
    t.reset(at)
    assert t.rows() == t.history[at]
    t.check_indexes()


def test_an_enum_whose_label_was_renamed(t: Resetting) -> None:
    t.reset_after(
        [
            "CREATE TYPE mood AS ENUM ('sad', 'ok')",
            "CREATE TABLE t (id int PRIMARY KEY, m mood)",
            "INSERT INTO t VALUES (1, 'sad'), (2, 'ok')",
        ],
        ["ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", "UPDATE t SET m = 'ok'"],
    )
    assert t.rows() == [("1", "blue"), ("2", "ok")]


# ── constraints of today ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "sqlstate"),
    [
        ("ALTER TABLE t ADD UNIQUE (a)", "23505"),
        ("ALTER TABLE t ADD CHECK (a > 1)", "23514"),
        ("ALTER TABLE t ALTER COLUMN b SET NOT NULL", "23502"),
        ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES other", "23503"),
        ("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a)", "23505"),
        ("ALTER TABLE t ADD COLUMN n int NOT NULL", "23502"),
    ],
)
def test_a_constraint_that_the_former_rows_break(t: Resetting, change: str, sqlstate: str) -> None:
    t.done("CREATE TABLE other (id int PRIMARY KEY)")
    t.done("INSERT INTO other VALUES (5)")
    t.done("CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b int)")
    t.done("INSERT INTO t VALUES (1, 1, NULL), (2, 1, 3)")
    at = t.now()
    t.done("DELETE FROM t")
    t.done(change)
    assert t.refused(at) == sqlstate
    t.check_indexes()


@pytest.mark.parametrize("action", ["NO ACTION", "CASCADE", "SET NULL", "RESTRICT"])
def test_rows_that_others_refer_to_do_not_go(t: Resetting, action: str) -> None:
    t.done("CREATE TABLE t (id int PRIMARY KEY, a int)")
    t.done("INSERT INTO t VALUES (1, 1)")
    at = t.now()
    t.done("INSERT INTO t VALUES (2, 2)")
    t.done(f"CREATE TABLE other (id int PRIMARY KEY, r int REFERENCES t ON DELETE {action})")
    t.done("INSERT INTO other VALUES (1, 1), (2, 2)")
    assert t.refused(at) == "23503"
    assert t.rows("SELECT * FROM other ORDER BY 1") == [("1", "1"), ("2", "2")]
    t.done("DELETE FROM other WHERE r = 2")
    t.done("UPDATE t SET a = 5")
    t.reset(at)
    assert t.rows() == t.history[at]


def test_rows_that_refer_to_each_other(t: Resetting) -> None:
    at = t.reset_after(
        ["CREATE TABLE t (id int PRIMARY KEY, r int REFERENCES t)", "INSERT INTO t VALUES (1, 2), (2, 1)"],
        ["UPDATE t SET r = NULL", "DELETE FROM t"],
    )
    assert t.rows() == t.history[at]
    t.check()


# ── refusals ───────────────────────────────────────────────────────────────────────────────────


def test_what_is_refused(t: Resetting) -> None:
    before = t.importing.node.store.snapshot().at
    t.done("CREATE TABLE t (id int PRIMARY KEY, a int)")
    t.done("INSERT INTO t VALUES (1, 1)")
    assert t.refused("2999-01-01") == "22023"
    assert t.refused("soon") == "22023"
    assert t.refused("1752918804333.0000603136") == "22023"
    assert t.refused(to_text(before)) == "42P01"
    t.done("CREATE VIEW v AS SELECT * FROM t")
    for statement, sqlstate in (
        ("ALTER TABLE nowhere RESET TO SYSTEM TIME '-1s'", "42P01"),
        ("ALTER TABLE v RESET TO SYSTEM TIME '-1s'", "42809"),
        ("ALTER TABLE t RESET TO SNAPSHOT nowhere", "42704"),
        ("ALTER TABLE t RESET TO SYSTEM TIME", "42601"),
        ("ALTER TABLE t RESET TO TIME '-1s'", "42601"),
        ("ALTER TABLE t RESET TO SYSTEM TIME $1", "0A000"),
        ("ALTER TABLE pg_catalog.pg_class RESET TO SYSTEM TIME '-1s'", "42501"),
    ):
        assert t.say(statement).sqlstate == sqlstate, statement
    assert t.done("ALTER TABLE IF EXISTS nowhere RESET TO SYSTEM TIME '-1s'").notices
    at = t.now()
    t.done("BEGIN")
    assert t.say(f"ALTER TABLE t RESET TO SYSTEM TIME '{at}'").sqlstate == "25001"
    assert t.say(f"ALTER TABLE t RESET TO SYSTEM TIME '{at}'").sqlstate == "25P02"
    t.done("ROLLBACK")


def test_only_the_owner_may(t: Resetting) -> None:
    name = t.importing.name
    t.done("CREATE TABLE t (id int PRIMARY KEY)")
    t.done(f"CREATE USER ann_{name}")
    at = t.now()
    ann = Talk(t.importing.node, user=f"ann_{name}")
    said = ann.say(f"ALTER TABLE {name}.t RESET TO SYSTEM TIME '{at}'")
    assert said.sqlstate == "42501"
    ann.close()


def test_a_snapshot_is_gone_back_to(t: Resetting) -> None:
    name = t.importing.name
    t.done("CREATE TABLE t (id int PRIMARY KEY, a int)")
    t.done("INSERT INTO t VALUES (1, 1)")
    t.done(f'CREATE SNAPSHOT "Shot {name}" FOR TABLE t')
    t.done("UPDATE t SET a = 2")
    t.done(f'ALTER TABLE t RESET TO SNAPSHOT "Shot {name}"')
    assert t.rows() == [("1", "1")]
    t.done(f'DROP SNAPSHOT "Shot {name}"')
