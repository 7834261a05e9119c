"""RUN GC NOW and SHOW GC STATUS, in a node with a lake."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tenure.catalog.descriptors.definitions import Table
from tenure.catalog.descriptors.zones import Zone, zones
from tenure.kv.keys import SEQUENCE_VALUES
from tests.unit.lake_nodes import LakeClient, lake_options

PATIENCE_UPDATES = 2_000
"""A sweep by itself takes about two seconds to come and collect."""


class Collected(LakeClient):
    """A node with a lake whose tables keep history for a second, and a client of it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(lake_options(directory))
        self.ttl(1)

    def ttl(self, seconds: int, table: str = "") -> None:
        id = self.run(f"SELECT '{table}'::regclass::oid::int8")[0][0] if table else 0
        keyspace = self.node.store.keyspace
        self.node.store.transact(lambda txn: zones(keyspace).put(txn, Zone(id, 0, seconds)))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collected]:
    node = Collected(tmp_path_factory.mktemp("gc"))
    yield node
    node.close()


def test_gc_runs_now_and_shows_what_it_did(node: Collected) -> None:
    node.run("CREATE TABLE a (id int PRIMARY KEY, v int)")
    node.run("INSERT INTO a VALUES (1, 0), (2, 0)")
    for number in range(5):
        node.run(f"UPDATE a SET v = {number}")
    node.env.sleep(1.1)
    ((job, swept, removed, objects),) = node.run("RUN GC NOW FOR TABLE a")
    assert (swept, removed, objects) == (1, 8, 0)
    ((kind, status),) = node.run(f"SELECT job_type, status FROM tenure_internal.jobs WHERE job_id = {job}")
    assert (kind, status) == ("gc", "succeeded")
    ((*names, stage, _, ttl, held_by, points, shown, garbage, finished),) = node.run(
        "SHOW GC STATUS FOR TABLE a"
    )
    assert names == ["defaultdb", "public", "a", "a_pkey"]
    assert (stage, ttl, held_by, points, shown, garbage) == ("swept", 1.0, "gc.ttlseconds", 0, 8, 0)
    assert finished is not None
    assert node.run("SELECT * FROM a ORDER BY 1") == [(1, 4), (2, 4)]


def test_status_names_what_the_system_s_own_records_are_kept_by(node: Collected) -> None:
    node.run("RUN GC NOW")
    found = dict(
        node.run("SELECT DISTINCT kind, held_by FROM tenure_internal.gc_status WHERE kind <> 'index'")
    )
    assert found == {"system": "gc.system_ttl", "catalog": "gc.ttlseconds"}


def test_a_read_below_the_threshold_is_refused(node: Collected) -> None:
    node.run("CREATE TABLE b (id int PRIMARY KEY)")
    node.run("INSERT INTO b VALUES (1)")
    ((at,),) = node.run("SELECT cluster_logical_timestamp()")
    node.env.sleep(1.2)
    node.run("UPDATE b SET id = 2")
    node.env.sleep(1.2)
    node.run("RUN GC NOW")
    with pytest.raises(psycopg.Error) as caught:
        node.run(f"SELECT * FROM b AS OF SYSTEM TIME {at}")
    assert caught.value.sqlstate == "72000"
    assert (caught.value.diag.message_primary or "").startswith("cannot read the catalog at ")


def test_the_error_names_the_table_and_the_ttl_that_it_has(node: Collected) -> None:
    node.run("CREATE TABLE named (id int PRIMARY KEY)")
    node.run("CREATE TABLE other (id int PRIMARY KEY)")
    node.run("ALTER TABLE other CONFIGURE ZONE USING gc.ttlseconds = 600")  # the catalog stays as long
    node.run("INSERT INTO named VALUES (1)")
    ((at,),) = node.run("SELECT cluster_logical_timestamp()")
    node.run("UPDATE named SET id = 2")
    node.run("SET CLUSTER SETTING gc.system_ttl = '1s'")
    node.env.sleep(1.2)
    node.run("RUN GC NOW")
    for table, named, setting in (
        ("named", 'table "named"', "gc.ttlseconds"),
        ("system.jobs", "the system's records", "gc.system_ttl"),
    ):
        with pytest.raises(psycopg.Error, match=f"cannot read {named} at {at}") as caught:
            node.run(f"SELECT * FROM {table} AS OF SYSTEM TIME {at}")
        assert (caught.value.diag.message_hint or "").endswith(f"with {setting}.")
    node.run("RESET CLUSTER SETTING gc.system_ttl")
    node.run("ALTER TABLE other CONFIGURE ZONE DISCARD")


def test_a_dropped_table_is_collected_with_its_descriptor(node: Collected) -> None:
    node.run("CREATE TABLE c (id int PRIMARY KEY)")
    node.run("INSERT INTO c SELECT generate_series(1, 3000)")
    ((id,),) = node.run("SELECT 'c'::regclass::oid::int8")
    node.run("DROP TABLE c")
    node.env.sleep(1.2)
    node.run("RUN GC NOW")
    store = node.node.store
    assert node.node.catalog.get(store.snapshot(), id) is None
    assert store.engine.spread(*store.keyspace.index_span(id, 1), 0, 1000).keys == 0


def test_indexes_truncated_rows_and_all_that_a_schema_has_contained_are_collected(node: Collected) -> None:
    node.run("CREATE SCHEMA s")
    node.run("CREATE TYPE s.mood AS ENUM ('x', 'y')")
    node.run("CREATE TABLE s.t (id serial PRIMARY KEY, m s.mood)")
    node.run("CREATE VIEW s.v AS SELECT id FROM s.t")
    node.run("INSERT INTO s.t (m) VALUES ('x'), ('y')")
    node.run("CREATE TABLE d (id int PRIMARY KEY, v int)")
    node.run("CREATE INDEX d_v ON d (v)")
    node.run("INSERT INTO d SELECT g, g FROM generate_series(1, 100) g")
    node.run("DROP INDEX d_v")
    node.run("TRUNCATE d")
    node.run("INSERT INTO d VALUES (1, 1)")
    node.run("DROP SCHEMA s CASCADE")
    ((id,),) = node.run("SELECT 'd'::regclass::oid::int8")
    node.env.sleep(1.2)
    node.run("RUN GC NOW")
    node.env.sleep(
        1.2
    )  # what has no data goes when the catalog's own threshold, which the first sweep moves, has passed
    node.run("RUN GC NOW")
    store, catalog = node.node.store, node.node.catalog
    left = {each.name for each in catalog.list(store.snapshot())}
    assert left.isdisjoint({"s", "mood", "t", "v", "t_id_seq"})
    assert not list(store.snapshot().scan(store.keyspace.table_span(SEQUENCE_VALUES)))
    table = catalog.get(store.snapshot(), id)
    assert isinstance(table, Table)
    present = {index.id for index in table.indexes}
    for index in range(1, table.next_index):
        rows = store.engine.spread(*store.keyspace.index_span(id, index), 0, 1000).keys
        assert rows == (1 if index in present else 0), index
    assert node.run("SELECT * FROM d") == [(1, 1)]


def test_gc_is_not_run_in_a_transaction_block(node: Collected) -> None:
    with pytest.raises(psycopg.Error) as caught, node.root.transaction():
        node.run("RUN GC NOW")
    assert caught.value.sqlstate == "25001"


def test_gc_of_a_table_that_does_not_exist(node: Collected) -> None:
    with pytest.raises(psycopg.Error) as caught:
        node.run("RUN GC NOW FOR TABLE nothing")
    assert caught.value.sqlstate == "42P01"


def test_only_superusers_run_gc_of_everything_and_owners_that_of_their_tables(node: Collected) -> None:
    node.run("CREATE USER ann WITH PASSWORD 'secret-of-ann'")
    node.run("CREATE TABLE of_root (id int PRIMARY KEY)")
    with node.connect("ann", "secret-of-ann") as ann:
        for statement in ("RUN GC NOW", "RUN GC NOW FOR TABLE of_root"):
            with pytest.raises(psycopg.Error) as caught:
                ann.execute(statement)
            assert caught.value.sqlstate == "42501"
        assert ann.execute("SHOW GC STATUS").fetchall() == []


def test_a_node_sweeps_by_itself_while_tables_are_made_written_and_dropped(node: Collected) -> None:
    node.run("SET CLUSTER SETTING gc.interval = '100ms'")
    node.run("SET CLUSTER SETTING gc.system_ttl = '1s'")
    node.run("CREATE TABLE busy (id int PRIMARY KEY, v int)")
    node.run("INSERT INTO busy VALUES (1, 0)")
    node.run("CREATE TABLE short (id int PRIMARY KEY)")
    ((dropped,),) = node.run("SELECT 'short'::regclass::oid::int8")
    node.run("DROP TABLE short")
    store, updates = node.node.store, 0
    while node.node.catalog.get(store.snapshot(), dropped) is not None:
        node.run("UPDATE busy SET v = v + 1")
        updates += 1
        assert updates < PATIENCE_UPDATES, "nothing was collected"
        node.env.sleep(0.02)
    assert node.run("SELECT v FROM busy") == [(updates,)]
    for name in ("gc.interval", "gc.system_ttl"):
        node.run(f"RESET CLUSTER SETTING {name}")
