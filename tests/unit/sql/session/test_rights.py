"""What a SQL session holds through its node's session, while the node is stopped and others think it dead."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.base.errors import RetryError, TenureError, Terminated
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.cluster.sessions.liveness import Liveness
from tenure.node import Node
from tests.unit.sql.talking import Speaker, a_node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with a_node(tmp_path) as node:
        Speaker(node).run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        Speaker(node).run("CREATE SEQUENCE s")
        Speaker(node).run("INSERT INTO t SELECT g, 0 FROM generate_series(1, 5) g")
        yield node


@pytest.fixture
def other(node: Node, tmp_path: Path) -> Iterator[Node]:
    with a_node(tmp_path) as other:
        yield other


class Stall:
    """Stops a node past its ttl: the other deletes its session; woken, it has another, and a lease of it."""

    def __init__(self, node: Node, other: Node) -> None:
        self._node, self._other = node, other
        self.times = 0

    def __call__(self, *, renews: bool = True) -> None:
        self.times += 1
        session = self._node.liveness.session()
        self._other.store.transact(lambda txn: self._other.cluster.sessions.release(txn, session.id))
        while session.done.is_set() is False or not self._has_session():
            self._node.liveness.step()
        if renews:
            self._node.leases.renew()

    def _has_session(self) -> bool:
        liveness = self._node.liveness
        assert isinstance(liveness, Liveness)
        session = liveness._session
        return session is not None and not session.done.is_set()

    def once_before(self, monkeypatch: pytest.MonkeyPatch, target: object, name: str) -> None:
        """It happens just before the next call of this."""
        original: Callable[..., Any] = getattr(target, name)

        def stalled(*values: Any, **named: Any) -> Any:
            if not self.times:
                # A change of the schema keeps renewals away while it commits.
                self(renews=target is not CatalogUse)
            return original(*values, **named)

        monkeypatch.setattr(target, name, stalled)


@pytest.fixture
def stall(node: Node, other: Node) -> Stall:
    return Stall(node, other)


@pytest.fixture
def holder(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    speaker.run("SELECT pg_advisory_lock(1)")
    yield speaker
    speaker.close()


PLACES: dict[str, Callable[[Node], tuple[object, str]]] = {
    "before it binds to a lease": lambda node: (node.leases, "bind"),
    "before it commits": lambda node: (CatalogUse, "_start_commit"),
}
WRITES = {
    "INSERT": "INSERT INTO t VALUES (10, 10)",
    "UPDATE": "UPDATE t SET a = 10 WHERE id = 1",
    "DDL": "CREATE TABLE u (id int)",
    "several": "INSERT INTO t VALUES (10, 10); INSERT INTO t VALUES (11, 10)",
}


@pytest.mark.invariant("lock-fence")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", WRITES.values(), ids=list(WRITES))
@pytest.mark.parametrize("inline", [False, True], ids=["thread", "loop"])
def test_a_statement_that_is_tried_again_asks_again_for_the_locks(
    node: Node,
    other: Node,
    holder: Speaker,
    stall: Stall,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    text: str,
    inline: bool,
) -> None:
    stall.once_before(monkeypatch, *PLACES[place](node))
    with pytest.raises(TenureError) as caught:
        holder.run(text, inline=inline)
    assert stall.times == 1
    if caught.value.sqlstate == "40001":  # not tried again by itself: its client does that
        node.leases.renew()
        with pytest.raises(Terminated) as caught:
            holder.run(text, inline=inline)
    assert caught.value.sqlstate == "57P01" and "its advisory locks were lost" in str(caught.value)
    elsewhere = Speaker(other)
    assert elsewhere.rows("SELECT pg_try_advisory_lock(1)") == [(True,)]
    assert elsewhere.rows("SELECT count(*) FROM t WHERE a = 10") == [(0,)]
    assert elsewhere.rows("SELECT to_regclass('u')") == [(None,)]


def test_without_such_locks_it_is_tried_again_in_silence(
    node: Node, stall: Stall, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker = Speaker(node)
    speaker.run("SELECT pg_advisory_lock(1); SELECT pg_advisory_unlock(1)")
    stall.once_before(monkeypatch, CatalogUse, "_start_commit")
    speaker.run("INSERT INTO t VALUES (10, 10)")
    assert stall.times == 1
    assert speaker.rows("SELECT a FROM t WHERE id = 10") == [(10,)]


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN; SAVEPOINT x", "BEGIN; SELECT 1 FROM t; SAVEPOINT x"])
def test_a_block_ends_with_the_locks_of_its_session(
    node: Node, other: Node, holder: Speaker, stall: Stall, begin: str
) -> None:
    for each in begin.split("; "):
        holder.run(each)
    stall()
    with pytest.raises(Terminated):
        holder.run("INSERT INTO t VALUES (10, 10)")
    assert Speaker(other).rows("SELECT count(*) FROM t WHERE a = 10") == [(0,)]


def test_a_lock_of_a_transaction_is_lost_with_the_transaction(node: Node, other: Node, stall: Stall) -> None:
    speaker = Speaker(node)
    speaker.run("BEGIN")
    speaker.run("SELECT pg_advisory_xact_lock(1)")
    stall()
    with pytest.raises(RetryError, match="session was lost"):
        speaker.run("INSERT INTO t VALUES (10, 10)")
    assert Speaker(other).rows("SELECT pg_try_advisory_lock(1)") == [(True,)]
    assert speaker.tag("COMMIT") == "ROLLBACK"
    speaker.run("INSERT INTO t VALUES (10, 10)")  # nothing is held any more: the session goes on


OUTSIDE_OF_BLOCKS = {
    "setval": "SELECT setval('s', 100)",
    "restart": "ALTER SEQUENCE s RESTART WITH 100",
    "cluster setting": "SET CLUSTER SETTING sql.query_memory = 100000000",
}


@pytest.mark.invariant("lock-fence")
@pytest.mark.parametrize("text", OUTSIDE_OF_BLOCKS.values(), ids=list(OUTSIDE_OF_BLOCKS))
def test_what_counts_at_once_is_fenced_too(
    node: Node, other: Node, holder: Speaker, stall: Stall, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    before = Speaker(other).rows("SHOW CLUSTER SETTING sql.query_memory")
    original, client = node.store.transact, threading.get_ident()

    def stalled(run: Any, **named: Any) -> Any:
        if threading.get_ident() == client and not stall.times:  # loops of the node commit, too
            stall()
        return original(run, **named)

    monkeypatch.setattr(node.store, "transact", stalled)
    with pytest.raises(Terminated):
        holder.run(text)
    elsewhere = Speaker(other)
    assert elsewhere.rows("SHOW CLUSTER SETTING sql.query_memory") == before
    assert elsewhere.rows("SELECT nextval('s')") == [(1,)]


def test_rows_that_a_lost_block_has_locked_are_proved_by_its_commit(
    node: Node, other: Node, stall: Stall
) -> None:
    speaker, elsewhere = Speaker(node), Speaker(other)
    speaker.run("BEGIN")
    speaker.run("SELECT a FROM t WHERE id = 1 FOR UPDATE")
    stall()
    elsewhere.run("UPDATE t SET a = 5 WHERE id = 1")
    speaker.run("UPDATE t SET a = a + 1 WHERE id = 1")  # of the row in hand, without a look at the store
    with pytest.raises(RetryError):
        speaker.run("COMMIT")
    assert elsewhere.rows("SELECT a FROM t WHERE id = 1") == [(5,)]


def test_cursors_with_hold_and_prepared_statements_need_no_right(node: Node, stall: Stall) -> None:
    speaker = Speaker(node)
    speaker.run("BEGIN")
    speaker.run("DECLARE kept CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id")
    speaker.run("COMMIT")
    speaker.run("PREPARE p AS SELECT count(*) FROM t")
    stall()
    assert speaker.rows("FETCH 2 FROM kept") == [(1,), (2,)]
    assert speaker.rows("EXECUTE p") == [(5,)]
