"""Temporary objects use permanent ones, which do not know of them: others may change and drop them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Said, Talk, running


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    with running(tmp_path) as first, running(tmp_path) as second:
        yield first, second


@pytest.fixture(params=["another session", "another node"])
def talks(pair: tuple[Node, Node], request: pytest.FixtureRequest) -> tuple[Talk, Talk]:
    """A session with temporary objects, and one that knows nothing of them."""
    node, other = pair
    talk = Talk(node)
    _said(
        talk,
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE SEQUENCE numbers",
        "CREATE TABLE t (id int PRIMARY KEY, a int, m mood)",
        "INSERT INTO t VALUES (1, 10, 'glad')",
    )
    return talk, Talk(other if request.param == "another node" else node)


def _said(talk: Talk, *lines: str) -> Said:
    for line in lines:
        answer = talk.say(line)
        assert answer.sqlstate == "", (line, answer)
    return answer


def _refused(talk: Talk, statement: str, sqlstate: str, *words: str) -> None:
    answer = talk.say(statement)
    assert answer.sqlstate == sqlstate, (statement, answer)
    assert all(each in answer.message for each in words), answer


def _pinned(talk: Talk) -> set[str]:
    """The names of what the open transaction has pinned."""
    block = talk.session.state.block
    assert block is not None
    return {each.name for each in block.use.used() if each.id in block.use.pins}


def test_a_temporary_view_goes_on_when_others_rename_and_extend_what_it_reads(
    talks: tuple[Talk, Talk],
) -> None:
    talk, other = talks
    _said(talk, "CREATE TEMP VIEW v AS SELECT * FROM t", "PREPARE p AS SELECT * FROM v")
    _said(other, "ALTER TABLE t RENAME TO u", "ALTER TABLE u RENAME COLUMN a TO b")
    _said(other, "ALTER TABLE u ADD COLUMN z int", "INSERT INTO u VALUES (2, 20, 'sad')")
    for statement in ("SELECT * FROM v ORDER BY id", "EXECUTE p"):
        answer = _said(talk, statement)
        assert (answer.columns, answer.rows) == (
            ("id", "a", "m"),
            (("1", "10", "glad"), ("2", "20", "sad")),
        )


@pytest.mark.parametrize(
    ("view", "change", "sqlstate", "words"),
    [
        ("SELECT * FROM t", "DROP TABLE t", "42P01", 'relation "t" does not exist'),
        ("SELECT id FROM public.t", "DROP TABLE t", "42P01", 'relation "public.t" does not exist'),
        ("SELECT * FROM t", "ALTER TABLE t DROP COLUMN a", "42703", 'column "a" of relation "t"'),
        ("SELECT a FROM t", "ALTER TABLE t ALTER COLUMN a TYPE text", "42703", 'column "a" of relation "t"'),
        ("SELECT z FROM (SELECT * FROM t) AS x(x, y, z)", "ALTER TABLE t DROP COLUMN a", "42703", '"a"'),
        (
            "SELECT t.id, t.a FROM t GROUP BY t.id",
            "ALTER TABLE t DROP CONSTRAINT t_pkey",
            "42803",
            'column "t.a" must appear in the GROUP BY clause',
        ),
        ("SELECT nextval('numbers')", "DROP SEQUENCE numbers", "42P01", 'relation "numbers"'),
        ("SELECT last_value FROM numbers", "DROP SEQUENCE numbers", "42P01", 'relation "numbers"'),
        ("SELECT 'glad'::mood", "DROP TYPE mood CASCADE", "42704", 'type "mood" does not exist'),
        ("SELECT m FROM t", "DROP TYPE mood CASCADE", "42703", 'column "m" of relation "t"'),
    ],
)
def test_a_temporary_view_whose_sources_others_drop_says_what_is_missing(
    talks: tuple[Talk, Talk], view: str, change: str, sqlstate: str, words: str
) -> None:
    talk, other = talks
    _said(talk, f"CREATE TEMP VIEW v AS {view}", "CREATE TEMP VIEW w AS SELECT * FROM v")
    _said(talk, "PREPARE p AS SELECT * FROM v", "EXECUTE p")
    _said(other, change)
    _refused(talk, "EXECUTE p", sqlstate, words)
    _refused(talk, "SELECT * FROM w", sqlstate, words)
    _said(talk, "BEGIN", "SAVEPOINT s")
    _refused(talk, "SELECT * FROM v", sqlstate, words)
    _said(talk, "ROLLBACK TO s", "SELECT 1", "COMMIT")
    for catalog in ("pg_attribute", "pg_depend", "pg_views", "information_schema.columns"):
        _said(talk, f"SELECT * FROM {catalog}")
    _said(talk, "SHOW CREATE TABLE v", "CREATE OR REPLACE TEMP VIEW other AS SELECT 1 AS n", "DROP VIEW v, w")
    _refused(talk, "SELECT * FROM v", "42P01", '"v"')


def test_a_table_of_the_same_name_is_not_the_one_that_a_temporary_view_has_read(
    talks: tuple[Talk, Talk],
) -> None:
    talk, other = talks
    _said(talk, "CREATE TEMP VIEW v AS SELECT a, nextval('numbers') FROM t")
    _said(other, "DROP TABLE t", "CREATE TABLE t (id int, a int)", "INSERT INTO t VALUES (1, 666)")
    _refused(talk, "SELECT * FROM v", "42P01", '"t"')


def test_a_transaction_that_has_read_through_a_temporary_view_keeps_what_it_reads(
    talks: tuple[Talk, Talk],
) -> None:
    talk, _ = talks
    _said(talk, "CREATE TEMP VIEW v AS SELECT a FROM t", "BEGIN", "SELECT * FROM v")
    assert "t" in _pinned(talk)
    _said(talk, "COMMIT")


def test_the_same_session_drops_its_temporary_views_with_what_they_read(talks: tuple[Talk, Talk]) -> None:
    talk, other = talks
    _said(talk, "CREATE TEMP VIEW v AS SELECT a FROM t", "CREATE TEMP VIEW w AS SELECT * FROM v")
    for statement in ("DROP TABLE t", "ALTER TABLE t DROP COLUMN a"):
        _refused(talk, statement, "2BP01")
    _said(talk, "BEGIN", "SAVEPOINT s", "DROP TABLE t CASCADE")
    _refused(talk, "SELECT * FROM w", "42P01", '"w"')
    _said(talk, "ROLLBACK TO s")
    assert _said(talk, "SELECT * FROM w").rows == (("10",),)
    _said(talk, "DROP TABLE t CASCADE", "COMMIT")
    _refused(talk, "SELECT * FROM w", "42P01", '"w"')
    _refused(other, "SELECT * FROM t", "42P01", '"t"')


def test_a_temporary_view_and_its_table_are_made_together(talks: tuple[Talk, Talk]) -> None:
    talk, other = talks
    _said(talk, "BEGIN", "CREATE TABLE new (a int)", "INSERT INTO new VALUES (1)")
    _said(talk, "CREATE TEMP VIEW v AS SELECT * FROM new", "SAVEPOINT s", "ALTER TABLE new ADD COLUMN b int")
    assert _said(talk, "SELECT * FROM v").rows == (("1",),)
    _said(talk, "ROLLBACK TO s", "COMMIT")
    assert _said(talk, "SELECT * FROM v").rows == (("1",),)
    _refused(other, "SELECT * FROM v", "42P01", '"v"')
    _said(other, "DROP TABLE new")
    _refused(talk, "SELECT * FROM v", "42P01", '"new"')


def test_a_temporary_view_writes_nothing_into_the_catalog(pair: tuple[Node, Node]) -> None:
    node, other = pair
    talk = Talk(node)
    _said(talk, "CREATE TABLE t (a int)")
    lease_at = other.leases.newest_at()
    _said(talk, "CREATE TEMP VIEW v AS SELECT * FROM t", "DROP VIEW v")
    assert other.leases.newest_at() == lease_at


def test_temporary_views_have_no_past_and_no_jobs(talks: tuple[Talk, Talk]) -> None:
    talk, _ = talks
    _said(talk, "CREATE TEMP VIEW v AS SELECT * FROM t")
    _refused(talk, "SELECT * FROM v AS OF SYSTEM TIME '-1ms'", "0A000")
    _refused(talk, "EXPORT INTO CSV 'x' FROM SELECT * FROM v", "0A000")


# ── columns of enum types ───────────────────────────────────────────────────────────────────────


def test_a_temporary_table_follows_the_changes_of_its_columns_type(talks: tuple[Talk, Talk]) -> None:
    talk, other = talks
    _said(talk, "CREATE TEMP TABLE e (id int PRIMARY KEY, m mood DEFAULT 'glad', ms mood[])")
    _said(talk, "INSERT INTO e VALUES (1, DEFAULT, '{sad,glad}')", "CREATE INDEX ON e (m)")
    _said(talk, "PREPARE p AS SELECT id, m, ms FROM e ORDER BY m", "EXECUTE p")
    _said(
        other, "ALTER TYPE mood ADD VALUE 'low' BEFORE 'sad'", "ALTER TYPE mood RENAME VALUE 'glad' TO 'high'"
    )
    _said(other, "ALTER TYPE mood RENAME TO feeling")
    _said(talk, "INSERT INTO e VALUES (2, 'low'), (3, DEFAULT)")
    assert _said(talk, "EXECUTE p").rows == (
        ("2", "low", None),
        ("1", "high", "{sad,high}"),
        ("3", "high", None),
    )
    _refused(talk, "INSERT INTO e VALUES (4, 'glad')", "22P02", "feeling")
    assert _said(talk, "SELECT id FROM e WHERE m = 'low'").rows == (("2",),)


USES = (
    "SELECT * FROM e",
    "EXECUTE p",
    "INSERT INTO e (id) VALUES (9)",
    "DELETE FROM e",
    "COPY e TO STDOUT",
    "TRUNCATE e",
    "ALTER TABLE e DROP COLUMN m",
    "CREATE INDEX ON e (id)",
    "CREATE VIEW v AS SELECT * FROM e",
    "CREATE TABLE copied (LIKE e)",
    "CREATE TEMP TABLE copied (LIKE e INCLUDING ALL)",
)
CATALOGS = (
    *("pg_attribute", "pg_attrdef", "pg_constraint", "pg_indexes", "pg_depend", "pg_type"),
    *("information_schema.columns", "information_schema.check_constraints"),
)


@pytest.mark.parametrize("drop", ["DROP TYPE mood CASCADE", "DROP SCHEMA s CASCADE"])
def test_a_temporary_table_whose_type_others_drop_says_what_is_missing(
    talks: tuple[Talk, Talk], drop: str
) -> None:
    talk, other = talks
    _said(talk, "CREATE SCHEMA s", "CREATE TYPE s.mood AS ENUM ('sad', 'glad')")
    name = "s.mood" if "SCHEMA" in drop else "mood"
    _said(talk, f"CREATE TEMP TABLE e (id int, m {name} DEFAULT 'glad' CHECK (m <> 'sad'), ms {name}[])")
    _said(talk, "INSERT INTO e VALUES (1, 'glad', '{sad}')", "PREPARE p AS SELECT * FROM e", "EXECUTE p")
    _said(other, drop)
    for statement in USES:
        _refused(talk, statement, "42704", 'type "mood" does not exist')
    _said(talk, "BEGIN", "INSERT INTO t (id) VALUES (5)", "SAVEPOINT s")
    _refused(talk, "SELECT * FROM e", "42704")
    _said(talk, "ROLLBACK TO s", "COMMIT", "SHOW COLUMNS FROM e")
    for catalog in CATALOGS:
        _said(talk, f"SELECT * FROM {catalog}")
    shown = str(_said(talk, "SHOW CREATE TABLE e").rows[0][-1])
    assert "DEFAULT 'glad'::pg_temp.mood" in shown
    _said(talk, "DROP TABLE e")
    _refused(talk, "SELECT * FROM e", "42P01")


def test_a_type_is_made_with_the_temporary_table_that_has_it(talks: tuple[Talk, Talk]) -> None:
    talk, other = talks
    _said(
        talk,
        "BEGIN",
        "CREATE TYPE size AS ENUM ('s', 'l')",
        "CREATE TEMP TABLE e (z size DEFAULT 'l', a int)",
    )
    _said(
        talk, "INSERT INTO e (a) VALUES (1)", "CREATE INDEX ON e (z)", "SAVEPOINT s", "DROP TYPE size CASCADE"
    )
    assert _said(talk, "SELECT * FROM e").rows == (("1",),)
    _said(talk, "ROLLBACK TO s", "COMMIT")
    assert _said(talk, "SELECT * FROM e WHERE z = 'l'").rows == (("l", "1"),)
    _said(
        talk,
        "BEGIN",
        "CREATE TYPE more AS ENUM ('m')",
        "ALTER TABLE e ADD COLUMN y more DEFAULT 'm'",
        "COMMIT",
    )
    assert _said(talk, "SELECT * FROM e").rows == (("l", "1", "m"),)
    _refused(talk, "DROP TYPE more", "2BP01")
    _said(talk, "DROP TYPE more CASCADE")
    assert _said(talk, "SELECT * FROM e").rows == (("l", "1"),)
    _said(other, "DROP TYPE size")
    _refused(talk, "SELECT * FROM e", "42704", '"size"')
    _said(talk, "DISCARD TEMP")
    _refused(talk, "SELECT * FROM e", "42P01")


def test_enum_columns_of_temporary_tables_write_nothing_into_the_catalog(pair: tuple[Node, Node]) -> None:
    node, other = pair
    talk = Talk(node)
    _said(talk, "CREATE TYPE mood AS ENUM ('sad')")
    lease_at = other.leases.newest_at()
    _said(talk, "CREATE TEMP TABLE e (m mood)", "ALTER TABLE e ADD COLUMN n mood", "DROP TABLE e")
    assert other.leases.newest_at() == lease_at


def test_a_transaction_that_has_used_a_temporary_table_keeps_its_types(talks: tuple[Talk, Talk]) -> None:
    talk, _ = talks
    _said(talk, "CREATE TEMP TABLE e (m mood)", "BEGIN", "SELECT count(*) FROM e")
    assert "mood" in _pinned(talk)
    _said(talk, "COMMIT")


def test_a_column_of_a_temporary_table_needs_the_right_to_use_its_type(
    talks: tuple[Talk, Talk], plain: Talk
) -> None:
    _said(plain, "CREATE TEMP TABLE e (m mood)")
    _said(talks[0], "REVOKE USAGE ON TYPE mood FROM PUBLIC")
    _refused(plain, "CREATE TEMP TABLE f (m mood)", "42501", "type mood")
    _refused(plain, "ALTER TABLE e ADD COLUMN n mood", "42501", "type mood")
    _said(plain, "INSERT INTO e VALUES ('sad')", "ALTER TABLE e ADD COLUMN n int")


# ── rights ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def plain(talks: tuple[Talk, Talk], pair: tuple[Node, Node]) -> Talk:
    """A session of somebody who may act as `reader`, a role that may read t."""
    _said(talks[0], "CREATE ROLE plain LOGIN", "CREATE ROLE reader", "GRANT reader TO plain")
    _said(talks[0], "GRANT SELECT ON t TO reader", "CREATE TABLE secret (a int)")
    return Talk(pair[0], user="plain")


def test_a_temporary_view_reads_by_the_rights_of_its_owner_and_no_others(
    talks: tuple[Talk, Talk], plain: Talk
) -> None:
    _said(plain, "CREATE TEMP VIEW v AS SELECT a FROM secret")
    _refused(plain, "SELECT * FROM v", "42501", "table secret")
    _refused(plain, "ALTER VIEW v OWNER TO root", "42501")
    _refused(plain, "ALTER TABLE v OWNER TO root", "42501")
    _refused(plain, "SELECT * FROM v", "42501", "table secret")
    _said(plain, "SET ROLE reader", "CREATE TEMP VIEW r AS SELECT a FROM t", "RESET ROLE")
    assert _said(plain, "SELECT * FROM r").rows == (("10",),)
    _said(talks[1], "REVOKE SELECT ON t FROM reader")
    _refused(plain, "SELECT * FROM r", "42501", "table t")


def test_a_view_of_a_role_that_was_left_keeps_its_query(talks: tuple[Talk, Talk], plain: Talk) -> None:
    root = talks[1]
    _said(plain, "SET ROLE reader", "CREATE TEMP VIEW r AS SELECT a FROM t", "RESET ROLE")
    _said(root, "REVOKE reader FROM plain", "GRANT SELECT ON secret TO reader")
    for statement in ("CREATE OR REPLACE TEMP VIEW r AS SELECT a FROM secret", "ALTER VIEW r OWNER TO plain"):
        _refused(plain, statement, "42501", "must be owner of view r")
    _said(root, "ALTER ROLE reader RENAME TO former", "CREATE ROLE reader", "GRANT reader TO plain")
    assert _said(plain, "SELECT * FROM r").rows == (("10",),)
    _refused(plain, "CREATE OR REPLACE TEMP VIEW r AS SELECT a FROM secret", "42501")
    _said(root, "DROP OWNED BY former", "DROP ROLE former")
    _refused(plain, "SELECT * FROM r", "42501")
    _said(plain, "DROP VIEW r")


def test_a_renamed_role_keeps_its_temporary_views(talks: tuple[Talk, Talk], plain: Talk) -> None:
    _said(plain, "CREATE TEMP VIEW v AS SELECT a FROM t")
    _said(talks[1], "ALTER ROLE plain RENAME TO simple", "CREATE ROLE plain")
    assert _said(plain, "SELECT * FROM v").rows == (("10",),)
    _said(plain, "CREATE OR REPLACE TEMP VIEW v AS SELECT a + 1 AS a FROM t")
    assert _said(plain, "SELECT * FROM v").rows == (("11",),)
