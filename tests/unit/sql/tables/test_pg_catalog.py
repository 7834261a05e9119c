"""pg_catalog: what its rows follow from, who sees them, and how much is made for a question."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.unit.sql.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("pg_catalog")) as made:
        made.tag("CREATE TABLE app (id serial PRIMARY KEY, name text)")
        made.tag("CREATE ROLE plain LOGIN")
        yield made


def _names(connection: "psycopg.Connection[Any]", condition: str) -> list[str]:
    query = f"SELECT relname FROM pg_class WHERE {condition} ORDER BY relname"
    return [row[0] for row in connection.execute(query.encode())]


def test_oids_are_descriptor_ids(served: Served) -> None:
    same = "SELECT count(*) FROM pg_class c JOIN tenure_internal.tables t ON t.id = c.oid "
    same += "AND t.table_name = relname"
    assert served.rows(same) == [(2,)]
    (database,) = served.rows("SELECT oid FROM pg_database WHERE datname = 'defaultdb'")[0]
    assert served.rows(f"SELECT id FROM tenure_internal.databases WHERE id = {database}") == [(database,)]


def test_an_objects_number_names_it_and_its_name_gives_the_number(served: Served) -> None:
    for name in ("app", "app_pkey", "app_id_seq", "pg_class"):
        (oid,) = served.rows(f"SELECT '{name}'::regclass::oid")[0]
        assert served.rows(f"SELECT {oid}::regclass::text, relname FROM pg_class WHERE oid = {oid}") == [
            (name, name)
        ]


@pytest.mark.parametrize(
    "condition",
    [
        "oid = 'app'::regclass",
        "relname = 'app'",
        "oid IN ('app'::regclass, 'app_pkey'::regclass) AND relkind = 'r'",
        "relnamespace = 'public'::regnamespace AND relname LIKE 'app' ",
        "oid = ANY (ARRAY['app'::regclass]::oid[])",
    ],
)
def test_a_condition_on_a_key_is_a_lookup(served: Served, condition: str) -> None:
    assert _names(served.root, condition) == ["app"]
    plan = served.rows(f"EXPLAIN SELECT relname FROM pg_class WHERE {condition}")
    assert any("Lookup" in row[0] for row in plan)


def test_a_join_looks_the_right_rows_up(served: Served) -> None:
    join = (
        "SELECT attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE relname = 'app' AND attnum > 0 ORDER BY attnum"
    )
    assert served.rows(join) == [("id",), ("name",)]
    plan = [row[0].strip() for row in served.rows(f"EXPLAIN {join}")]
    assert "Lookup: relname = 'app'::name" in plan
    assert "Lookup: attrelid = $1" in plan


def test_a_block_sees_its_own_changes_and_a_savepoint_takes_them_back(served: Served) -> None:
    with served.connect() as connection:
        connection.autocommit = False
        connection.execute("CREATE TABLE drafted (a int PRIMARY KEY, b text)")
        connection.execute("SAVEPOINT s")
        connection.execute("ALTER TABLE drafted RENAME TO renamed")
        connection.execute("CREATE INDEX late ON renamed (b)")
        assert _names(connection, "relname IN ('drafted', 'renamed', 'late')") == ["late", "renamed"]
        assert _names(served.root, "relname IN ('drafted', 'renamed', 'late')") == []
        connection.execute("ROLLBACK TO s")
        assert _names(connection, "relname IN ('drafted', 'renamed', 'late')") == ["drafted"]
        namespaces = "relnamespace IN ('public'::regnamespace, 'pg_catalog'::regnamespace)"
        assert _names(connection, f"{namespaces} AND relname = 'drafted'") == ["drafted"]
        connection.rollback()
    assert _names(served.root, "relname = 'drafted'") == []


def test_rows_follow_a_change_of_the_table_and_of_its_privileges(served: Served) -> None:
    served.tag("CREATE TABLE moving (a int)")
    columns = (
        "SELECT attname FROM pg_attribute WHERE attrelid = 'moving'::regclass AND attnum > 0 ORDER BY attnum"
    )
    acl = "SELECT relacl::text FROM pg_class WHERE relname = 'moving'"
    assert (served.rows(columns), served.rows(acl)) == ([("a",)], [(None,)])
    served.tag("ALTER TABLE moving ADD COLUMN b text")
    served.tag("GRANT SELECT ON moving TO plain")
    assert served.rows(columns) == [("a",), ("b",)]
    assert served.rows(acl) == [("{root=arwdDxtm/root,plain=r/root}",)]
    served.tag("DROP TABLE moving")
    assert _names(served.root, "relname = 'moving'") == []


def test_the_hidden_key_of_a_table_without_one_is_not_shown(served: Served) -> None:
    served.tag("CREATE TABLE keyless (a int)")
    assert served.rows("SELECT count(*) FROM pg_index WHERE indrelid = 'keyless'::regclass") == [(0,)]
    columns = "SELECT attname FROM pg_attribute WHERE attrelid = 'keyless'::regclass AND attnum > 0"
    assert served.rows(columns) == [("a",)]


def test_temporary_tables_are_shown_to_their_session(served: Served) -> None:
    with served.connect() as connection:
        connection.execute("CREATE TEMPORARY TABLE mine (a int)")
        found = connection.execute(
            "SELECT relpersistence, pg_table_is_visible(oid), relnamespace = pg_my_temp_schema() "
            "FROM pg_class WHERE relname = 'mine'"
        ).fetchall()
        assert found == [("t", True, True)]
        assert _names(served.root, "relname = 'mine'") == []


def test_a_reader_of_the_past_sees_the_catalog_of_then(served: Served) -> None:
    served.tag("CREATE TABLE bygone (a int)")
    (at,) = served.rows("SELECT cluster_logical_timestamp()")[0]
    served.tag("DROP TABLE bygone")
    query = f"SELECT relkind FROM pg_class AS OF SYSTEM TIME {at} WHERE relname = 'bygone'"
    assert served.rows(query) == [("r",)]


def test_plain_users_read_the_catalog_but_no_passwords(served: Served) -> None:
    with served.connect("plain") as plain:
        assert _names(plain, "relname = 'app'") == ["app"]
        for restricted in ("pg_authid", "pg_shadow", "pg_statistic"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                plain.execute(f"SELECT * FROM {restricted}".encode())
    assert served.rows("SELECT DISTINCT rolpassword FROM pg_authid") == [(None,)]


def test_visibility_follows_the_search_path(served: Served) -> None:
    served.tag("CREATE SCHEMA side")
    served.tag("CREATE TABLE side.app (id int)")
    query = "SELECT relnamespace::regnamespace::text, oid::regclass::text, pg_table_is_visible(oid) "
    query += "FROM pg_class WHERE relname = 'app' ORDER BY 1"
    assert served.rows(query) == [("public", "app", True), ("side", "side.app", False)]
    with served.connect(options="-c search_path=side,public") as connection:
        found = connection.execute(query.encode()).fetchall()
    assert found == [("public", "public.app", False), ("side", "app", True)]


def test_vectors_count_from_zero(served: Served) -> None:
    query = (
        "SELECT indkey, indkey[0], generate_subscripts(indkey, 1), 1 = ANY (indkey) "
        "FROM pg_index WHERE indrelid = 'public.app'::regclass"
    )
    assert served.rows(query) == [("1", 1, 0, True)]


def test_tableoid_is_there_but_no_part_of_a_star(served: Served) -> None:
    query = "SELECT tableoid::regclass::text, * FROM pg_am WHERE amname = 'heap'"
    assert served.rows(query) == [("pg_am", 2, "heap", "heap_tableam_handler", "t")]


def test_types_that_only_catalogs_have_are_refused_in_tables(served: Served) -> None:
    for kind in ("int2vector", "aclitem", "xid"):
        assert served.refusal(f"CREATE TABLE refused (a {kind})").sqlstate == "0A000"
    assert served.refusal("CREATE TABLE refused AS SELECT indkey FROM pg_index").sqlstate == "0A000"


@pytest.mark.parametrize("name", ["text_ops", "varchar_pattern_ops", "pg_catalog.text_pattern_ops"])
def test_an_operator_class_that_orders_as_the_type_does_is_taken(served: Served, name: str) -> None:
    served.tag(f"CREATE INDEX ON app (name {name})")
    served.tag("DROP INDEX app_name_idx")


def test_an_operator_class_of_another_order_or_type_is_refused(served: Served) -> None:
    assert served.refusal("CREATE INDEX ON app (name nothing_ops)").sqlstate == "42704"
    assert served.refusal("CREATE INDEX ON app (id text_ops)").sqlstate == "42804"


def test_prepared_statements_and_cursors_are_those_of_the_session(served: Served) -> None:
    with served.connect() as connection:
        connection.execute("PREPARE one (int) AS SELECT $1 + 1")
        connection.execute("BEGIN")
        connection.execute("DECLARE rows SCROLL CURSOR FOR SELECT id FROM app")
        prepared = connection.execute(
            "SELECT name, statement, parameter_types::text, result_types::text, from_sql "
            "FROM pg_prepared_statements"
        ).fetchall()
        assert prepared == [("one", "SELECT $1 + 1", "{integer}", "{integer}", True)]
        cursors = connection.execute("SELECT name, is_holdable, is_scrollable FROM pg_cursors").fetchall()
        assert cursors == [("rows", False, True)]
        connection.execute("ROLLBACK")
    assert served.rows("SELECT name FROM pg_prepared_statements") == []


def test_locks_are_shown_with_their_tables_and_numbers(served: Served) -> None:
    with served.connect() as connection:
        connection.execute("INSERT INTO public.app (id) VALUES (77)")
        connection.execute("BEGIN")
        connection.execute("SELECT pg_advisory_lock(5000000007), pg_advisory_lock(1, 2)")
        connection.execute("SELECT id FROM public.app WHERE id = 77 FOR UPDATE")
        pid = connection.info.backend_pid
        query = "SELECT locktype, relation::regclass::text, classid, objid, objsubid, mode, granted "
        found = served.rows(f"{query} FROM pg_locks WHERE pid = {pid} ORDER BY 1, 5")
        connection.execute("ROLLBACK")
    assert found == [
        ("advisory", None, 1, 705032711, 1, "ExclusiveLock", True),
        ("advisory", None, 1, 2, 2, "ExclusiveLock", True),
        ("tuple", "app", None, None, None, "ExclusiveLock", True),
    ]


def test_members_of_a_predefined_role_see_all_sessions(served: Served) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'root'"
    with served.connect("plain") as plain:
        assert plain.execute(query).fetchall() == [(0,)]
        served.tag("GRANT pg_read_all_stats TO plain")
        assert plain.execute(query).fetchall() != [(0,)]
    served.tag("REVOKE pg_read_all_stats FROM plain")


@pytest.mark.parametrize(
    ("query", "lookups"),
    [
        ("SELECT oid FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(app)$'", ["relname"]),
        (
            "SELECT 1 FROM pg_class c, pg_index i WHERE c.oid = 'app'::regclass AND c.oid = i.indrelid",
            ["oid", "indrelid"],
        ),
        (
            "SELECT 1 FROM pg_class c, pg_inherits i WHERE c.oid = i.inhparent AND i.inhrelid = 5",
            ["oid", "inhrelid"],
        ),
    ],
)
def test_what_psql_asks_about_one_table_makes_no_other_rows(
    served: Served, query: str, lookups: list[str]
) -> None:
    plan = [row[0].strip() for row in served.rows(f"EXPLAIN {query}")]
    found = [line.split()[1] for line in plan if line.startswith("Lookup: ")]
    assert {each for each in found if each != "$1"} == {*lookups}
    assert sum("Virtual Scan" in line for line in plan) == len(lookups)


def test_a_left_join_whose_rows_without_a_match_are_refused_is_an_inner_one(served: Served) -> None:
    join = "EXPLAIN SELECT 1 FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
    assert any("Hash Join" in row[0] for row in served.rows(join + "n.nspname <> 'pg_catalog'"))
    for condition in ("n.nspname IS NULL", "coalesce(n.nspname, 'x') = 'x'", "c.relname <> 'x'"):
        assert any("Left Join" in row[0] for row in served.rows(join + condition))


def test_the_number_of_keys_that_jdbc_asks_for_is_told(served: Served) -> None:
    assert served.rows("SELECT setting FROM pg_settings WHERE name = 'max_index_keys'") == [("32",)]
    assert served.refusal("SET max_index_keys = 33").sqlstate == "55P02"
