"""IMPORT INTO a locked table: it is unlocked by a version of its own, and locked again afterwards."""

import pytest

from tenure.catalog.descriptors.definitions import Table
from tests.unit.bulk.imports import Importing
from tests.unit.schema_change.locking import broken_locks, versions


def stored(importing: Importing) -> Table:
    ((id,),) = importing.rows(f"SELECT '{importing.name}.t'::regclass::oid::text")
    found = importing.node.catalog.get(importing.node.store.snapshot(), int(id or 0))
    assert isinstance(found, Table)
    return found


def until_locked(importing: Importing) -> None:
    while not stored(importing).is_locked:
        importing.node.locks.step()


@pytest.mark.invariant("I33")
@pytest.mark.parametrize("text", ["3,c\n4,d\n", "1,twice\n"], ids=["succeeds", "fails"])
def test_a_locked_table_is_imported_into_and_locked_again(importing: Importing, text: str) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    importing.done("INSERT INTO t VALUES (1, 'a')")
    importing.done("ALTER TABLE t SET (schema_locked = true)")
    until_locked(importing)
    said = importing.csv(text)
    assert bool(said.sqlstate) is text.startswith("1")
    until_locked(importing)
    assert broken_locks(versions(importing.node, stored(importing).id)) == []


@pytest.mark.invariant("I33")
def test_a_locked_table_is_reset_and_locked_again(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    importing.done("INSERT INTO t VALUES (1, 'a')")
    ((at,),) = importing.rows("SELECT cluster_logical_timestamp()::text")
    importing.done("INSERT INTO t VALUES (2, 'b')")
    importing.done("ALTER TABLE t SET (schema_locked = true)")
    until_locked(importing)
    importing.done(f"ALTER TABLE t RESET TO SYSTEM TIME '{at}'")
    until_locked(importing)
    assert importing.rows() == [("1", "a")]
    assert broken_locks(versions(importing.node, stored(importing).id)) == []
