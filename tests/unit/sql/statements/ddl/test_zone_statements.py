"""CONFIGURE ZONE and SHOW ZONE CONFIGURATION: inheritance, blocks, rights, refusals."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tenure.base.env import SystemEnv
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, DEFAULT_SCHEMA, NameKey
from tenure.retention.protections.protection_records import Mode, Targets
from tests.unit.sql.served import Served, serving
from tests.unit.sql.sessions import Talk, running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("zones")) as node:
        node.root.execute("CREATE DATABASE app")
        node.root.execute("CREATE SCHEMA sales")
        node.root.execute("CREATE TABLE sales.orders (id int PRIMARY KEY, city text)")
        node.root.execute("CREATE INDEX by_city ON sales.orders (city)")
        node.root.execute("CREATE VIEW sales.seen AS SELECT id FROM sales.orders")
        node.root.execute("CREATE USER clerk")
        yield node


@pytest.fixture(autouse=True)
def _no_zones(served: Served) -> Iterator[None]:
    yield
    for target in ("DATABASE defaultdb", "SCHEMA sales", "TABLE sales.orders", "INDEX sales.by_city"):
        served.root.execute(f"ALTER {target} CONFIGURE ZONE DISCARD".encode())
    served.root.execute("ALTER RANGE DEFAULT CONFIGURE ZONE USING gc.ttlseconds = 14400")


TARGETS = {
    "RANGE DEFAULT": "RANGE default",
    "DATABASE defaultdb": "DATABASE defaultdb",
    "SCHEMA sales": "SCHEMA defaultdb.sales",
    "TABLE sales.orders": "TABLE defaultdb.sales.orders",
    "INDEX sales.by_city": "INDEX defaultdb.sales.orders@by_city",
}


def shown(served: Served, target: str) -> tuple[str, str]:
    """The ttl in force of a target, and where it comes from."""
    ((name, parameter, value, source),) = served.rows(f"SHOW ZONE CONFIGURATION FROM {target}")
    assert (name, parameter) == (TARGETS[target], "gc.ttlseconds")
    return value, source


@pytest.mark.parametrize(
    "change",
    [
        "TRUNCATE sales.moves",
        "ALTER TABLE sales.moves ALTER COLUMN city TYPE int USING length(city)",
    ],
)
def test_a_zone_of_an_index_stays_when_a_statement_replaces_the_index(served: Served, change: str) -> None:
    served.root.execute("CREATE TABLE sales.moves (id int PRIMARY KEY, city text)")
    served.root.execute("CREATE INDEX by_target ON sales.moves (city)")
    served.root.execute("INSERT INTO sales.moves VALUES (1, 'Rome')")
    for number, index in ((7, "by_target"), (8, "moves_pkey")):
        served.tag(f"ALTER INDEX sales.moves@{index} CONFIGURE ZONE USING gc.ttlseconds = {number}")
    served.tag(change)
    for number, index in ((7, "by_target"), (8, "moves_pkey")):
        ((_, _, value, _),) = served.rows(f"SHOW ZONE CONFIGURATION FROM INDEX sales.moves@{index}")
        assert value == str(number)
    served.root.execute("DROP TABLE sales.moves")


def test_a_value_is_inherited_until_it_is_set(served: Served) -> None:
    expected = dict.fromkeys(TARGETS, ("14400", "RANGE default"))
    for number, target in enumerate(TARGETS, 1):
        assert served.tag(f"ALTER {target} CONFIGURE ZONE USING gc.ttlseconds = {number}") == "CONFIGURE ZONE"
        for below in list(TARGETS)[number - 1 :]:
            expected[below] = (str(number), TARGETS[target])
        assert {each: shown(served, each) for each in TARGETS} == expected
    for target in list(TARGETS)[:0:-1]:
        assert shown(served, target)[1] == TARGETS[target]
        served.tag(f"ALTER {target} CONFIGURE ZONE DISCARD")
        assert shown(served, target)[1] != TARGETS[target]


def test_all_zones_are_listed(served: Served) -> None:
    served.tag("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 60")
    expected = [
        ("RANGE default", "gc.ttlseconds", "14400", "RANGE default"),
        ("TABLE defaultdb.sales.orders", "gc.ttlseconds", "60", "TABLE defaultdb.sales.orders"),
    ]
    assert served.rows("SHOW ZONE CONFIGURATIONS") == expected
    assert served.rows("SHOW ZONE CONFIGURATION") == expected


@pytest.mark.parametrize(
    "target",
    [
        "INDEX sales.orders@by_city",
        "INDEX defaultdb.sales.orders @ by_city",
        'index "sales"."by_city"',
        "table defaultdb.sales.orders",
        "SCHEMA defaultdb.sales",
        "DATABASE app",
        "range default",
    ],
)
def test_targets_are_named_in_several_ways(served: Served, target: str) -> None:
    served.tag(f"alter {target} configure zone using gc.ttlseconds=77;")
    assert served.rows(f"SHOW ZONE CONFIGURATION FROM {target}")[0][2] == "77"
    if "range" not in target:
        served.tag(f"ALTER {target} CONFIGURE ZONE DISCARD")


def test_a_block_sees_its_own_zone_and_can_take_it_back(served: Served) -> None:
    with served.connect() as client:
        client.execute("BEGIN")
        client.execute("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 60")
        client.execute("SAVEPOINT s")
        client.execute("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 61")
        show = "SELECT gc_ttl_seconds FROM tenure_internal.zone_configurations WHERE name LIKE '%orders'"
        assert client.execute(show).fetchall() == [(61,)]
        assert shown(served, "TABLE sales.orders")[0] == "14400"
        client.execute("ROLLBACK TO s")
        assert client.execute(show).fetchall() == [(60,)]
        client.execute("COMMIT")
    assert shown(served, "TABLE sales.orders")[0] == "60"


def test_a_refused_statement_in_a_block_does_not_end_what_came_before(served: Served) -> None:
    with served.connect() as client:
        client.execute("BEGIN; SAVEPOINT s")
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            client.execute("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 0")
        client.execute("ROLLBACK TO s")
        client.execute("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 5")
        client.execute("COMMIT")
    assert shown(served, "TABLE sales.orders")[0] == "5"


def test_a_table_is_created_with_its_zone_in_one_block(served: Served) -> None:
    with served.connect() as client:
        client.execute("BEGIN; CREATE TABLE fresh (id int PRIMARY KEY)")
        client.execute("ALTER TABLE fresh CONFIGURE ZONE USING gc.ttlseconds = 9; COMMIT")
    assert served.rows("SHOW ZONE CONFIGURATION FROM TABLE fresh")[0][2:] == (
        "9",
        "TABLE defaultdb.public.fresh",
    )
    served.tag("ALTER TABLE fresh RENAME TO old")
    assert served.rows("SHOW ZONE CONFIGURATION FROM TABLE old")[0][2:] == ("9", "TABLE defaultdb.public.old")
    (id,) = served.rows("SELECT id FROM system.zones WHERE gc_ttl_seconds = 9")[0]
    served.tag("DROP TABLE old")
    assert served.rows(f"SELECT gc_ttl_seconds FROM system.zones WHERE id = {id}") == [(9,)]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 0", "22023"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = -5", "22023"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 99999999999", "22023"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 1, gc.ttlseconds = 2", "22023"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING num_replicas = 3", "22023"),
        ("ALTER RANGE DEFAULT CONFIGURE ZONE DISCARD", "22023"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 'x'", "42601"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 1.5", "42601"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds", "42601"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING gc.ttlseconds = 1,", "42601"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE USING", "42601"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE", "42601"),
        ("ALTER TABLE sales.orders CONFIGURE ZONE DISCARD now", "42601"),
        ("ALTER TABLE CONFIGURE ZONE DISCARD", "42601"),
        ("ALTER RANGE other CONFIGURE ZONE DISCARD", "42601"),
        ("ALTER VIEW sales.seen CONFIGURE ZONE DISCARD", "42601"),
        ("ALTER TABLE sales.seen CONFIGURE ZONE DISCARD", "42809"),
        ("ALTER TABLE pg_class CONFIGURE ZONE DISCARD", "42809"),
        ("ALTER TABLE missing CONFIGURE ZONE DISCARD", "42P01"),
        ("ALTER INDEX missing CONFIGURE ZONE DISCARD", "42P01"),
        ("ALTER INDEX sales.orders CONFIGURE ZONE DISCARD", "42809"),
        ("ALTER INDEX sales.orders@missing CONFIGURE ZONE DISCARD", "42704"),
        ("ALTER SCHEMA missing CONFIGURE ZONE DISCARD", "3F000"),
        ("ALTER SCHEMA app.missing CONFIGURE ZONE DISCARD", "3F000"),
        ("ALTER DATABASE missing CONFIGURE ZONE DISCARD", "3D000"),
        ("ALTER DATABASE system CONFIGURE ZONE USING gc.ttlseconds = 9", "2BP01"),
        ("SHOW ZONE CONFIGURATION FROM TABLE missing", "42P01"),
        ("SHOW ZONE CONFIGURATION FROM INDEX missing", "42P01"),
        ("SHOW ZONE CONFIGURATION FROM SCHEMA missing", "3F000"),
        ("SHOW ZONE CONFIGURATION FROM DATABASE missing", "3D000"),
        ("SHOW ZONE CONFIGURATION FOR TABLE sales.orders", "42601"),
        ("SHOW ZONE CONFIGURATIONS FROM TABLE sales.orders", "42601"),
    ],
)
def test_what_is_refused(served: Served, statement: str, sqlstate: str) -> None:
    assert served.refusal(statement).sqlstate == sqlstate


def test_a_read_only_transaction_changes_no_zone(served: Served) -> None:
    with served.connect() as client:
        client.execute("BEGIN READ ONLY")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            client.execute("ALTER TABLE sales.orders CONFIGURE ZONE DISCARD")


@pytest.mark.parametrize("target", TARGETS)
def test_only_the_owner_and_superusers_may(served: Served, target: str) -> None:
    served.tag("GRANT USAGE ON SCHEMA sales TO clerk")
    with served.connect(user="clerk") as client:
        for what in ("USING gc.ttlseconds = 5", "DISCARD"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                client.execute(f"ALTER {target} CONFIGURE ZONE {what}".encode())
        assert client.execute(f"SHOW ZONE CONFIGURATION FROM {target}".encode()).fetchall()
        if "orders" in target or "by_city" in target:
            served.tag("ALTER TABLE sales.orders OWNER TO clerk")
            client.execute(f"ALTER {target} CONFIGURE ZONE USING gc.ttlseconds = 5".encode())
            served.tag("ALTER TABLE sales.orders OWNER TO root")


def test_a_plan_that_was_kept_follows_a_new_index(served: Served) -> None:
    served.tag("CREATE TABLE a (id int PRIMARY KEY, b int)")
    for ttl in (3, 4):
        served.tag("CREATE INDEX again ON a (b)")
        served.tag(f"ALTER INDEX again CONFIGURE ZONE USING gc.ttlseconds = {ttl}")
        assert served.rows("SHOW ZONE CONFIGURATION FROM INDEX again")[0][2] == str(ttl)
        served.tag("DROP INDEX again")
    assert served.refusal("SHOW ZONE CONFIGURATION FROM INDEX again").sqlstate == "42P01"
    served.tag("DROP TABLE a")


def test_zones_of_the_past_are_shown_as_of_then(served: Served) -> None:
    ((before,),) = served.rows("SELECT cluster_logical_timestamp()")
    served.tag("ALTER SCHEMA sales CONFIGURE ZONE USING gc.ttlseconds = 321")
    query = "SELECT count(*) FROM tenure_internal.zone_configurations {} WHERE gc_ttl_seconds = 321"
    assert served.rows(query.format("")) == [(4,)]
    assert served.rows(query.format("").replace(" WHERE", f" AS OF SYSTEM TIME {before} WHERE")) == [(0,)]


def test_another_node_goes_by_a_zone_and_refreshes_its_protections_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        first, second = Talk(here), Talk(there)
        first.say("CREATE TABLE t (id int PRIMARY KEY)")
        table = there.catalog.id_at(there.store.snapshot(), NameKey(DEFAULT_DATABASE, DEFAULT_SCHEMA, "t"))
        assert table is not None
        at = here.store.snapshot().at
        targets = Targets((table,))
        here.store.transact(lambda txn: here.protections.protect(txn, at, Mode.AFTER, "job", b"1", targets))
        assert first.say("ALTER TABLE t CONFIGURE ZONE USING gc.ttlseconds = 90").tag == "CONFIGURE ZONE"
        assert second.say("SHOW ZONE CONFIGURATION FROM TABLE t").rows[0][2] == "90"
        env, until = SystemEnv(), SystemEnv().monotonic() + 30
        while not there.tracker.state.records and env.monotonic() < until:
            env.sleep(0.01)  # its interval is five minutes
        assert [each.at for each in there.tracker.state.records] == [at]
