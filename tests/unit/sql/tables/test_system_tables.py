"""System tables: their columns and keys, what is in them, and who may look."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from tenure.sql.tables.virtual import VirtualDefinition
from tenure.sql.text.redaction import without_secrets
from tests.system_tables import described
from tests.unit.sql.served import Served, serving

GOLDEN = Path(__file__).parent / "golden"

TABLES = (
    *("descriptor", "namespace", "schema_lease", "lease", "sqlliveness", "sql_instances", "jobs"),
    *("protected_ts_meta", "protected_ts_timestamps", "protected_ts_spans"),
    *("zones", "settings", "users", "role_members"),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("system_tables")) as made:
        made.tag("CREATE TABLE app (id serial PRIMARY KEY, name text)")
        yield made


def _described(each: VirtualDefinition) -> str:
    lines = [f"{each.schema}.{each.name}"]
    for column in each.columns:
        required = " NOT NULL" if column.name in each.required else ""
        lines.append(f"    {column.name} {column.type.sql_name}{required}")
    key = ", ".join(each.key)
    return "\n".join([*lines, f"    PRIMARY KEY ({key})" if key else "    no key"])


@pytest.mark.parametrize("schema", ["system", "tenure_internal"])
def test_tables_have_the_columns_types_and_keys_on_record(schema: str) -> None:
    made = "\n\n".join(_described(each) for each in described() if each.schema == schema) + "\n"
    assert made == (GOLDEN / f"{schema}.txt").read_text()


def test_every_table_that_people_are_promised_is_there() -> None:
    assert {each.name for each in described() if each.schema == "system"} == set(TABLES)


@pytest.mark.parametrize("each", list(described()), ids=lambda each: f"{each.schema}.{each.name}")
def test_every_table_answers_with_its_columns(served: Served, each: VirtualDefinition) -> None:
    answer = served.root.execute(f"SELECT * FROM {each.schema}.{each.name}".encode())
    assert [column.name for column in answer.description or ()] == [column.name for column in each.columns]
    for row in answer.fetchall():
        missing = [
            name for name, value in zip([c.name for c in each.columns], row, strict=True) if value is None
        ]
        assert not set(missing) & set(each.required)


@pytest.mark.parametrize("each", [each for each in described() if each.key], ids=lambda each: each.name)
def test_a_key_tells_rows_apart(served: Served, each: VirtualDefinition) -> None:
    key = ", ".join(f'"{name}"' for name in each.key)
    table = f"{each.schema}.{each.name}"
    rows = served.rows(f"SELECT {key} FROM {table} GROUP BY {key} HAVING count(*) > 1")
    assert rows == []


def test_names_lead_to_descriptors(served: Served) -> None:
    rows = served.rows(
        "SELECT n.name, length(d.descriptor) > 0 FROM system.namespace n JOIN system.descriptor d USING (id) "
        'WHERE n."parentSchemaID" = 101 ORDER BY 1'
    )
    assert rows == [("app", True), ("app_id_seq", True)]


def test_a_descriptor_is_shown_as_it_is_stored(served: Served) -> None:
    ((id, stored),) = served.rows(
        "SELECT id, descriptor FROM system.descriptor "
        "WHERE id = (SELECT id FROM system.namespace WHERE name = 'app')"
    )
    decoded = served.node.catalog.decode(bytes(stored))
    assert (decoded.id, decoded.name) == (id, "app")


def test_a_node_has_a_session_an_instance_and_a_lease(served: Served) -> None:
    rows = served.rows(
        "SELECT i.id, s.expiration > 0, l.nodeid, l.descriptor_ids FROM system.sql_instances i "
        "JOIN system.sqlliveness s USING (session_id) JOIN system.schema_lease l ON l.nodeid = i.id"
    )
    assert (1, True, 1, None) in rows


def test_a_session_id_is_the_instance_and_the_epoch(served: Served) -> None:
    id = served.node.liveness.session().id
    ((session,),) = served.rows("SELECT session_id FROM system.sqlliveness")
    assert bytes(session) == id.instance.to_bytes(8, "big") + id.epoch_at.to_bytes(8, "big")


def test_a_lease_is_written_at_its_own_time(served: Served) -> None:
    rows = served.rows(
        "SELECT (hlcwalltime || '.' || lpad(hlclogical::text, 10, '0'))::numeric FROM system.schema_lease"
    )
    held = served.rows("SELECT lease_at FROM tenure_internal.leases WHERE NOT is_closed")
    assert held[0] in rows


def test_a_finalized_cluster_has_no_expiring_leases(served: Served) -> None:
    assert served.rows("SELECT * FROM system.lease") == []


def test_protections_have_their_one_row_of_meta(served: Served) -> None:
    assert served.rows("SELECT * FROM system.protected_ts_meta") == [(True, 0, 0, 0, 0, 0)]


ADOPTION = """
    SELECT * FROM system.jobs
     WHERE state IN ('pending', 'running', 'pause-requested', 'paused', 'cancel-requested', 'reverting')
       AND (claim_session_id IS NULL OR NOT {}.sql_liveness_is_alive(claim_session_id))
"""


@pytest.mark.parametrize("schema", ["tenure_internal", "crdb_internal"])
def test_the_documents_query_for_jobs_to_adopt_runs(served: Served, schema: str) -> None:
    assert served.rows(ADOPTION.format(schema)) == []


def test_liveness_can_be_asked_in_sql(served: Served) -> None:
    rows = served.rows("SELECT tenure_internal.sql_liveness_is_alive(session_id) FROM system.sqlliveness")
    assert rows == [(True,)]
    nobody = "decode('00000000000000010000000000000001', 'hex')"
    assert served.rows(f"SELECT tenure_internal.sql_liveness_is_alive({nobody})") == [(False,)]


def test_the_past_of_a_system_table_can_be_read(served: Served) -> None:
    ((before,),) = served.rows("SELECT cluster_logical_timestamp()")
    assert isinstance(before, Decimal)
    served.tag("CREATE TABLE later (a int)")
    query = "SELECT count(*) FROM system.namespace AS OF SYSTEM TIME '{}' WHERE name = 'later'"
    assert served.rows(query.format(before)) == [(0,)]
    assert served.rows("SELECT count(*) FROM system.namespace WHERE name = 'later'") == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO system.users VALUES ('eve')",
        "UPDATE system.jobs SET state = 'running'",
        "DELETE FROM system.schema_lease",
        "UPDATE tenure_internal.sessions SET user_name = 'root'",
        "TRUNCATE system.jobs",
        "DROP TABLE system.jobs",
        "ALTER TABLE system.jobs ADD COLUMN x int",
        "CREATE INDEX ON system.jobs (state)",
        "CREATE TABLE system.mine (a int)",
        "CREATE VIEW tenure_internal.mine AS SELECT 1",
        "COPY system.jobs FROM STDIN",
    ],
)
def test_system_tables_cannot_be_changed(served: Served, statement: str) -> None:
    assert served.refusal(statement).sqlstate in ("42809", "42939", "42501", "42P01", "3F000")


@pytest.mark.invariant("records-restricted")
def test_the_records_below_sql_are_for_superusers(served: Served) -> None:
    served.tag("CREATE USER ann")
    with served.connect("ann") as ann:
        for table in TABLES:
            with pytest.raises(
                psycopg.errors.InsufficientPrivilege, match=f"permission denied for table {table}"
            ):
                ann.execute(f"SELECT * FROM system.{table}".encode())


def test_others_see_their_own_sessions_only(served: Served) -> None:
    served.tag("CREATE USER bob")
    with served.connect("bob", application_name="bob's") as bob:
        mine = bob.execute(
            "SELECT user_name, application_name, state, statement LIKE 'SELECT user_name%' "
            "FROM tenure_internal.sessions"
        ).fetchall()
        assert mine == [("bob", "bob's", "active", True)]
        everybody = served.rows("SELECT user_name FROM tenure_internal.sessions ORDER BY 1")
        assert everybody == [("bob",), ("root",)]


@pytest.mark.invariant("S24")
def test_passwords_are_not_shown(served: Served) -> None:
    with served.connect() as other:
        other.execute("/* hi */ CREATE  USER eve WITH PASSWORD 'canary-7'")
        shown = served.rows("SELECT statement FROM tenure_internal.sessions")
        assert ("CREATE USER ...",) in shown
        for each in described():
            if each.name != "plan_cache":
                rows = served.rows(f"SELECT * FROM {each.schema}.{each.name}")
                assert "canary-7" not in repr(rows)
    assert "canary-7" not in repr(served.rows("SELECT * FROM tenure_internal.plan_cache"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ALTER ROLE x PASSWORD 'y'", "ALTER ROLE ..."),
        ("/* /* */ */ create -- a\n user x password 'y'", "CREATE USER ..."),
        ("CREATE GROUP g PASSWORD 'y'", "CREATE GROUP ..."),
        ("CREATE USER x PASSWORD 'y", "..."),
        ("CREATE USER x", "CREATE USER x"),
        ("CREATE TABLE t (password text)", "CREATE TABLE t (password text)"),
        ("SELECT 'password'", "SELECT 'password'"),
        (
            "IMPORT INTO t CSV DATA ('s3://b/a.csv?AWS_REGION=x&AWS_SECRET_ACCESS_KEY=y')",
            "IMPORT INTO t CSV DATA ('s3://b/a.csv?redacted",
        ),
        (
            "EXPLAIN IMPORT INTO t CSV DATA ('s3://b/a?aws_session_token=y')",
            "EXPLAIN IMPORT INTO t CSV DATA ('s3://b/a?redacted",
        ),
        ("/* */ import into t csv data ('a.csv')", "/* */ import into t csv data ('a.csv')"),
        ("CREATE CHANGEFEED FOR t INTO 'https://h/y' WITH x", "CREATE CHANGEFEED FOR t INTO ..."),
        ("/* */ create changefeed for t into $$kafka://y$$", "/* */ create changefeed for t into ..."),
        ("CREATE CHANGEFEED FOR t INTO 'feeds/t'", "CREATE CHANGEFEED FOR t INTO 'feeds/t'"),
        ("CREATE CHANGEFEED FOR t INTO 'https://y", "..."),
    ],
)
@pytest.mark.invariant("S24")
def test_only_statements_that_may_have_secrets_are_cut_short(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_an_open_transaction_shows_its_pins_and_its_statement(served: Served) -> None:
    with served.connect() as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM app")
        state = served.rows("SELECT state, statement FROM tenure_internal.sessions WHERE state LIKE 'idle%'")
        assert ("idle in transaction", "SELECT * FROM app") in state
        pins = served.rows(
            "SELECT t.statement FROM tenure_internal.transactions t, tenure_internal.tables a "
            "WHERE a.table_name = 'app' AND a.id = ANY (t.descriptor_ids)"
        )
        assert pins == [("SELECT * FROM app",)]


def test_locks_are_shown(served: Served) -> None:
    served.tag("INSERT INTO app (name) VALUES ('x')")
    with served.connect() as other:
        other.execute("SELECT pg_advisory_lock(7)")
        other.execute("BEGIN")
        other.execute("SELECT * FROM app WHERE name = 'x' FOR UPDATE")
        shown = served.rows("SELECT kind, mode, is_held FROM tenure_internal.locks ORDER BY 1")
        assert shown == [("advisory", "exclusive", True), ("row", "exclusive", True)]


def test_a_locked_row_is_shown_as_a_row_and_with_its_session(served: Served) -> None:
    served.tag("CREATE TABLE keyed (a int, b text, v int, PRIMARY KEY (a, b))")
    served.tag(f"INSERT INTO keyed VALUES (1, 'two', 0), (2, '{'x' * 100}', 0)")
    with served.connect() as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM keyed FOR UPDATE")
        pid = other.info.backend_pid
        assert other.execute("SELECT pg_backend_pid()").fetchone() == (pid,)
        shown = served.rows("SELECT session_id, table_name, key FROM tenure_internal.locks ORDER BY key")
        name = "defaultdb.public.keyed"
        assert shown == [(pid, name, "(a, b)=(1, two)"), (pid, name, f"(a, b)=(2, {'x' * 100})")]
        assert (pid,) in served.rows("SELECT session_id FROM tenure_internal.sessions")
        ((of_transaction,),) = served.rows(
            "SELECT session_id FROM tenure_internal.transactions WHERE state = 'open' "
            f"AND session_id <> {served.root.info.backend_pid}"
        )
        assert of_transaction == pid


def test_the_keys_of_others_are_shown_to_superusers_alone(served: Served) -> None:
    served.tag("CREATE TABLE hidden (a int PRIMARY KEY)")
    served.tag("INSERT INTO hidden VALUES (1)")
    served.tag("CREATE USER onlooker")
    with served.connect() as other, served.connect("onlooker") as plain:
        other.execute("BEGIN")
        other.execute("SELECT * FROM hidden FOR UPDATE")
        rows = plain.execute("SELECT table_name, key FROM tenure_internal.locks").fetchall()
    assert rows == [("defaultdb.public.hidden", None)]


def test_kept_plans_are_shown(served: Served) -> None:
    served.rows("SELECT name FROM app WHERE id = 1")
    rows = served.rows(
        "SELECT statement, kind FROM tenure_internal.plan_cache WHERE statement LIKE '%FROM app WHERE%'"
    )
    assert ("SELECT name FROM app WHERE id = $1", "select") in rows


def test_the_cache_of_descriptors_is_that_of_the_lease(served: Served) -> None:
    rows = served.rows(
        "SELECT c.kind, c.version FROM tenure_internal.descriptor_cache c JOIN system.namespace n USING (id) "
        "WHERE c.name = 'app'"
    )
    assert rows == [("table", 1)]


def test_a_table_made_in_this_transaction_is_listed(served: Served) -> None:
    with served.connect() as other:
        other.execute("BEGIN")
        other.execute("CREATE TABLE mine (a int)")
        query = "SELECT count(*) FROM tenure_internal.tables WHERE table_name = 'mine'"
        assert other.execute(query).fetchall() == [(1,)]
        assert served.rows(query) == [(0,)]
        other.execute("ROLLBACK")
        assert other.execute(query).fetchall() == [(0,)]
