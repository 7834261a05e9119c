"""SHOW of what PostgreSQL has no SHOW for."""

from collections.abc import Iterator

import pytest

from tests.unit.sql.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("shows")) as made:
        made.tag("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        made.tag(
            "CREATE TABLE t (id serial PRIMARY KEY, a int NOT NULL DEFAULT 3 CHECK (a > 1), b text UNIQUE)"
        )
        made.tag("CREATE TABLE u (t int REFERENCES t, g int GENERATED ALWAYS AS (t * 2) STORED)")
        made.tag("CREATE INDEX ON t (a DESC, b)")
        made.tag("COMMENT ON TABLE t IS 'things'")
        made.tag("CREATE SCHEMA app")
        made.tag("CREATE VIEW app.v AS SELECT a FROM t")
        made.tag("CREATE DATABASE other")
        yield made


def _columns(served: Served, statement: str) -> list[str]:
    return [each.name for each in served.root.execute(statement.encode()).description or ()]


def test_databases(served: Served) -> None:
    rows = served.rows("SHOW DATABASES")
    assert rows == [("defaultdb", "root"), ("other", "root"), ("system", "root")]


def test_schemas_of_this_database_and_of_another(served: Served) -> None:
    own = [name for name, owner in served.rows("SHOW SCHEMAS") if owner is not None]
    assert own == ["app", "public"]
    assert [name for name, owner in served.rows("SHOW SCHEMAS FROM other") if owner] == ["public"]


def test_schemas_of_system_tables_are_in_every_database(served: Served) -> None:
    assert {("system", None), ("tenure_internal", None)} <= set(served.rows("SHOW SCHEMAS FROM other"))


def test_tables(served: Served) -> None:
    assert served.rows("SHOW TABLES") == [
        ("app", "v", "view", "root"),
        ("public", "t", "table", "root"),
        ("public", "t_id_seq", "sequence", "root"),
        ("public", "u", "table", "root"),
    ]
    assert _columns(served, "SHOW TABLES") == ["schema_name", "table_name", "type", "owner"]


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("app", ["v"]),
        ("defaultdb.app", ["v"]),
        ("defaultdb", ["v", "t", "t_id_seq", "u"]),
        ("other", []),
        ("other.public", []),
    ],
)
def test_tables_of_a_schema_or_a_database(served: Served, place: str, names: list[str]) -> None:
    assert [row[1] for row in served.rows(f"SHOW TABLES FROM {place}")] == names


def test_tables_with_their_comments(served: Served) -> None:
    rows = served.rows("SHOW TABLES FROM public WITH COMMENT")
    assert rows[0] == ("public", "t", "table", "root", "things")


def test_system_tables_are_listed_by_their_schema(served: Served) -> None:
    assert "jobs" in [row[1] for row in served.rows("SHOW TABLES FROM system")]


def test_columns(served: Served) -> None:
    assert served.rows("SHOW COLUMNS FROM t") == [
        ("id", "integer", False, "nextval('public.t_id_seq'::regclass)", None, ["t_pkey"], False),
        ("a", "integer", False, "3", None, ["t_pkey", "t_a_b_idx"], False),
        ("b", "text", True, None, None, ["t_pkey", "t_b_key", "t_a_b_idx"], False),
    ]


def test_columns_that_nobody_named_are_hidden(served: Served) -> None:
    rows = served.rows("SHOW COLUMNS FROM u")
    assert [(row[0], row[6]) for row in rows] == [("t", False), ("g", False), ("rowid", True)]
    assert rows[1][4] == "(t * 2)"


def test_columns_of_views_and_system_tables(served: Served) -> None:
    assert [row[:2] for row in served.rows("SHOW COLUMNS FROM app.v")] == [("a", "integer")]
    assert ("session_id", "bytea") in [row[:2] for row in served.rows("SHOW COLUMNS FROM system.sqlliveness")]


@pytest.mark.parametrize("word", ["INDEX", "INDEXES", "KEYS"])
def test_indexes(served: Served, word: str) -> None:
    rows = [row[1:6] for row in served.rows(f"SHOW {word} FROM t")]
    assert rows == [
        ("t_a_b_idx", True, 1, "a", "DESC"),
        ("t_a_b_idx", True, 2, "b", "ASC"),
        ("t_b_key", False, 1, "b", "ASC"),
        ("t_pkey", False, 1, "id", "ASC"),
    ]


def test_constraints(served: Served) -> None:
    rows = [row[1:] for row in served.rows("SHOW CONSTRAINTS FROM t")]
    assert rows == [
        ("t_a_check", "CHECK", "CHECK ((a > 1))", True),
        ("t_b_key", "UNIQUE", "UNIQUE (b)", True),
        ("t_pkey", "PRIMARY KEY", "PRIMARY KEY (id)", True),
    ]
    ((*_, details, _),) = served.rows("SHOW CONSTRAINTS FROM u")
    assert details == "FOREIGN KEY (t) REFERENCES public.t (id)"


def test_enums_and_sequences(served: Served) -> None:
    assert served.rows("SHOW ENUMS") == [("public", "mood", ["sad", "ok"], "root")]
    assert served.rows("SHOW SEQUENCES") == [("public", "t_id_seq")]


def test_users(served: Served) -> None:
    served.tag("CREATE ROLE readers NOLOGIN")
    assert served.rows("SHOW USERS") == [("readers", "NOLOGIN", []), ("root", "SUPERUSER", [])]
    assert served.rows("SHOW ROLES") == served.rows("SHOW USERS")


def test_sessions_name_the_client_and_what_it_does(served: Served) -> None:
    with served.connect(application_name="watcher") as other:
        other.execute("SELECT 1")
        rows = served.rows("SHOW SESSIONS")
    names = _columns(served, "SHOW SESSIONS")
    (watcher,) = [dict(zip(names, row, strict=True)) for row in rows if "watcher" in row]
    assert (watcher["user_name"], watcher["state"], watcher["statement"]) == ("root", "idle", "SELECT 1")


def test_nodes_leases_and_statements(served: Served) -> None:
    ((node, address, *_),) = served.rows("SHOW NODES")
    assert served.node.front is not None
    assert (node, address) == (1, f"127.0.0.1:{served.node.front.port}")
    assert [row[0] for row in served.rows("SHOW LEASES")] == [1]
    assert [row[4] for row in served.rows("SHOW STATEMENTS")] == ["SHOW STATEMENTS"]


def test_is_superuser_tells_the_truth(served: Served) -> None:
    served.tag("CREATE USER plain")
    served.tag("CREATE USER mighty SUPERUSER")
    for user, truth in (("root", "on"), ("plain", "off"), ("mighty", "on")):
        with served.connect(user) as other:
            assert other.info.parameter_status("is_superuser") == truth
            assert other.execute("SHOW is_superuser").fetchall() == [(truth,)]
            other.execute("DISCARD ALL")
            assert other.execute("SELECT current_setting('is_superuser')").fetchall() == [(truth,)]


def test_turns_that_were_too_long_are_counted_and_logged(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def long_turns() -> int:
        ((count,),) = served.rows("SELECT long_turns FROM tenure_internal.nodes WHERE is_this")
        return int(count)

    before = long_turns()
    monkeypatch.setattr("tenure.pgwire.turns.LONG_TURN_SECONDS", -1.0)
    served.rows("SELECT 'a turn'")
    served.tag("CREATE USER secretive PASSWORD 'never told'")
    monkeypatch.undo()
    assert long_turns() >= before + 2
    logged = [each.getMessage() for each in caplog.records if each.name == "tenure.pgwire.turns"]
    assert any("SELECT 'a turn'" in each or "SELECT $1" in each for each in logged)
    assert any("CREATE USER ..." in each for each in logged)
    assert not any("never told" in each for each in logged)


def test_nothing_blocks_when_nothing_waits(served: Served) -> None:
    assert served.rows("SHOW BLOCKERS") == []
    assert served.rows("SHOW BLOCKERS FOR JOB 7") == []


def test_postgresqls_own_show_is_left_alone(served: Served) -> None:
    assert served.rows("SHOW search_path") == [('"$user", public',)]
    assert served.rows("SHOW transaction_isolation") == [("serializable",)]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("SHOW TABLES FROM nope", "3D000"),
        ("SHOW TABLES FROM defaultdb.nope", "3F000"),
        ("SHOW TABLES FROM nope.public", "3D000"),
        ("SHOW SCHEMAS FROM nope", "3D000"),
        ("SHOW COLUMNS FROM nope", "42P01"),
        ("SHOW INDEXES FROM app.v", "42809"),
        ("SHOW CREATE TABLE nope", "42P01"),
        ("SHOW CREATE VIEW t", "42809"),
        ("SHOW CREATE SCHEMA nope", "3F000"),
        ("SHOW TABLES t", "42601"),
        ("SHOW COLUMNS t", "42601"),
        ("SHOW BLOCKERS FOR JOB x", "42601"),
        ("SHOW nonsense", "42704"),
    ],
)
def test_what_is_wrong_is_said(served: Served, statement: str, sqlstate: str) -> None:
    assert served.refusal(statement).sqlstate == sqlstate


def test_show_works_in_a_transaction_and_sees_its_changes(served: Served) -> None:
    with served.connect() as other:
        other.execute("BEGIN")
        other.execute("CREATE TABLE mine (a int)")
        other.execute("ALTER TABLE t ADD COLUMN c int")
        assert ("public", "mine", "table", "root") in other.execute("SHOW TABLES").fetchall()
        assert "c integer" in other.execute("SHOW CREATE TABLE t").fetchall()[0][1]
        other.execute("ROLLBACK")
    assert "mine" not in [row[1] for row in served.rows("SHOW TABLES")]


def test_show_can_be_prepared(served: Served) -> None:
    with served.connect() as other:
        for _ in range(7):
            assert other.execute("SHOW TABLES FROM app", prepare=True).fetchall() == [
                ("app", "v", "view", "root")
            ]
