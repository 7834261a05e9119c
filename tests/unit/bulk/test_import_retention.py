"""Imports that last longer than history is kept: sweeps run while they wait at a gate."""

import pytest

from tenure.catalog.descriptors.zones import Zone, zones
from tenure.kv.keys import MANIFESTS
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tests.unit.bulk.gates import held
from tests.unit.bulk.imports import Importing
from tests.unit.bulk.test_import_jobs import Background
from tests.unit.sql.sessions import Said


@pytest.fixture
def t(importing: Importing) -> Importing:
    importing.done("CREATE TABLE target (id int PRIMARY KEY, v int)")
    importing.done("INSERT INTO target VALUES (1, 0), (2, 0)")
    importing.done("CREATE TABLE t (id int PRIMARY KEY, ref int REFERENCES target, self int REFERENCES t)")
    importing.done("INSERT INTO t VALUES (100, 1, 100)")
    return importing


def imported(t: Importing, rows: str, kernel: str, *, options: str = "") -> Said:
    """Imports; at the kernel the history of all tables goes, as far as nobody protects it."""
    location = t.file("rows.csv", rows)
    with held(t.node, kernel) as gate:
        statement = Background(t, f"IMPORT INTO t CSV DATA ('{location}') {options}")
        gate.wait()
        t.done("UPDATE target SET v = v + 1")
        _end_history(t)
        gate.open()
        return statement.said()


def _end_history(t: Importing) -> None:
    store = t.node.store
    _set_ttl(t, 0)
    t.done("RUN GC NOW")
    manifests = store.keyspace.head(MANIFESTS)
    store.transact(lambda txn: publish_threshold(txn, store.keyspace, manifests, txn.read_at))
    _set_ttl(t, 3_600)


def _set_ttl(t: Importing, seconds: int) -> None:
    ids, records = [_id(t, name) for name in ("target", "t")], zones(t.node.store.keyspace)

    def work(txn: Transaction) -> None:
        for id in ids:
            records.put(txn, Zone(id, 0, seconds))

    t.node.store.transact(work)


def _id(t: Importing, table: str) -> int:
    ((found,),) = t.rows(f"SELECT '{table}'::regclass::oid::int8")
    return int(found or 0)


def test_foreign_keys_are_checked_as_of_a_time_that_is_protected(t: Importing) -> None:
    said = imported(t, "7,2,100\n8,1,7\n", "check_references")
    assert t.counts(said) == ("2", "0", "0")
    assert t.rows("SELECT id FROM t ORDER BY id") == [("7",), ("8",), ("100",)]
    assert t.rows("SELECT * FROM system.protected_ts_timestamps") == []


def test_a_second_check_without_the_bad_rows_protects_again(t: Importing) -> None:
    said = imported(t, "7,2,100\n8,9,7\n9,1,8\n", "check_references", options="WITH max_bad_rows = 5")
    assert t.counts(said) == ("1", "0", "2")
    assert t.rows("SELECT * FROM system.protected_ts_timestamps") == []


@pytest.mark.parametrize("kernel", ["sort_split", "merge_range"])
def test_bases_are_found_when_the_history_of_manifests_has_gone(t: Importing, kernel: str) -> None:
    assert t.counts(imported(t, "7,2,100\n", kernel)) == ("1", "0", "0")


def test_an_import_that_fails_releases(t: Importing) -> None:
    said = imported(t, "7,9,100\n", "check_references")
    assert said.sqlstate == "23503"
    assert t.rows("SELECT * FROM system.protected_ts_timestamps") == []
