"""Imports and transactions on the same table: each sees all of the other, or nothing."""

import threading

import pytest

from tenure.base.errors import RetryError
from tenure.kv.gaps import Gap, GapReason
from tenure.kv.keys import Span
from tests.unit.bulk.imports import Importing

BATCH_ROWS = 50


@pytest.fixture
def t(importing: Importing) -> Importing:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    importing.done("INSERT INTO t VALUES (1, 'old')")
    return importing


def _span(t: Importing) -> Span:
    ((id,),) = t.rows(f"SELECT '{t.name}.t'::regclass::oid::text")
    assert id is not None
    return t.node.store.keyspace.index_span(int(id), 1)


def test_a_transaction_that_read_before_an_import_does_not_commit_after_it(t: Importing) -> None:
    span = _span(t)
    txn = t.node.store.begin()
    assert len(list(txn.scan(span))) == 1
    t.csv("2,new\n")
    txn.put(t.node.store.keyspace.cleaned_key(b"\0" * 10)[:-1] + b"x", b"")
    with pytest.raises(RetryError):
        txn.commit()


def test_a_row_that_was_looked_for_before_an_import_counts_too(t: Importing) -> None:
    span = _span(t)
    txn = t.node.store.begin()
    missing = next(txn.scan(span))[0][:-1] + b"\x02"
    assert txn.get(missing) is None
    t.csv("2,new\n")
    txn.put(t.node.store.keyspace.cleaned_key(b"\0" * 10)[:-1] + b"x", b"")
    with pytest.raises(RetryError):
        txn.commit()


def test_a_watch_is_told_to_scan_again(t: Importing) -> None:
    store = t.node.store
    watch = store.watch([_span(t)], since_at=store.snapshot().at)
    t.csv("2,new\n")
    gap = watch.next(5.0)
    assert isinstance(gap, Gap) and gap.reason is GapReason.IMPORTED
    watch.close()


def test_a_snapshot_from_before_sees_none_of_it(t: Importing) -> None:
    store, span = t.node.store, _span(t)
    before = store.snapshot()
    t.csv("2,new\n")
    after = store.snapshot()
    assert len(list(before.scan(span))) == 1
    assert len(list(after.scan(span))) == 2


def test_readers_and_writers_see_imports_whole(t: Importing) -> None:
    """Each import brings so many rows with a tag of its own; each transaction adds to what it counted."""
    t.done("DELETE FROM t")
    stop = threading.Event()
    faults: list[str] = []
    counted = [0]

    def read() -> None:
        talk = t.session()
        while not stop.is_set():
            said = talk.say("SELECT a, count(*) FROM t WHERE a LIKE 'import%' GROUP BY a")
            if said.sqlstate in ("55000", "40001"):
                continue
            faults.extend(str(row) for row in said.rows if row[1] != str(BATCH_ROWS))
            faults.extend([said.message] if said.sqlstate else [])
            counted[0] += 1
        talk.close()

    def write() -> None:
        talk = t.session()
        while not stop.is_set():
            said = talk.say("INSERT INTO t SELECT 1000000 + count(*), 'sql' FROM t")
            if said.sqlstate not in ("", "55000", "40001"):
                faults.append(f"{said.sqlstate} {said.message}")
        talk.close()

    threads = [threading.Thread(target=work) for work in (read, write)]
    for thread in threads:
        thread.start()
    for number in range(8):
        first = number * BATCH_ROWS
        text = "".join(f"{id},import {number}\n" for id in range(first, first + BATCH_ROWS))
        said = t.csv(text)
        faults.extend([f"{said.sqlstate} {said.message}"] if said.sqlstate else [])
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert counted[0] > 0
    assert t.rows("SELECT count(*) FROM t WHERE a LIKE 'import%'") == [(str(8 * BATCH_ROWS),)]
    ((written, distinct),) = t.rows("SELECT count(*), count(DISTINCT id) FROM t WHERE a = 'sql'")
    assert written == distinct
