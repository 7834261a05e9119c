"""Settings of the cluster that are set on a running node: what they change there.

Other tests show the effects of the other settings; `tests/tidy/test_settings.py` sees that each has one.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import CommitTooLarge, RetryError, TenureError
from tenure.base.machine_memory import resident_bytes
from tenure.base.settings import DEFINITIONS, Settings
from tenure.base.timestamp import seconds_between
from tenure.cluster.settings import ClusterSettings
from tenure.front import Listen
from tenure.kv.gaps import Gap
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.watch import ChangeBatch, Watch
from tenure.node import Node, NodeOptions
from tenure.sql.duck.offload import Duck
from tenure.storage.engine import Group
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.table.lake.bases import LakeBases
from tenure.table.write import TableWriter
from tests.unit.sql.talking import Speaker, a_node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with a_node(Path(tmp_path_factory.mktemp("settings"))) as node:
        Speaker(node).run("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
        yield node


@pytest.fixture
def root(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    yield speaker
    speaker.close()


@pytest.fixture(autouse=True)
def empty(node: Node) -> None:
    speaker = Speaker(node)
    speaker.run("DELETE FROM t")
    speaker.close()


@pytest.fixture
def change(root: Speaker) -> Iterator[Callable[[str, str], None]]:
    """Sets one for a test."""
    changed = []

    def to(name: str, text: str) -> None:
        root.run(f"SET CLUSTER SETTING {name} = '{text}'")
        changed.append(name)

    yield to
    for name in changed:
        root.run(f"RESET CLUSTER SETTING {name}")


Change = Callable[[str, str], None]


def _sqlstate(speaker: Speaker, text: str) -> str:
    with pytest.raises(TenureError) as caught:
        speaker.run(text)
    return caught.value.sqlstate


@pytest.mark.setting("kv.transaction.max_rows")
def test_the_most_rows_of_a_transaction(root: Speaker, change: Change) -> None:
    text = "INSERT INTO t SELECT g, '' FROM generate_series(1, 1001) g"
    change("kv.transaction.max_rows", "1000")
    assert _sqlstate(root, text) == "54000"
    change("kv.transaction.max_rows", "2000")
    assert root.tag(text) == "INSERT 0 1001"


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT g, '' FROM generate_series(2000, 3500) g",
        "UPDATE t SET v = 'x'",
        "DELETE FROM t",
    ],
)
def test_what_has_found_too_many_rows_writes_none(
    root: Speaker, change: Change, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.run("INSERT INTO t SELECT g, '' FROM generate_series(1, 1500) g")
    change("kv.transaction.max_rows", "1000")
    written: list[Any] = []

    def note(writer: TableWriter, txn: Transaction, *rows: Any, **named: Any) -> None:
        written.extend(filter(None, rows))

    monkeypatch.setattr("tenure.table.write.TableWriter._add", note)
    monkeypatch.setattr("tenure.table.write.TableWriter._write", note)
    with pytest.raises(CommitTooLarge) as caught:
        root.run(text)
    assert written == []
    assert "kv.transaction.max_rows" in caught.value.hint


@pytest.mark.setting("kv.transaction.max_bytes")
def test_the_most_bytes_of_a_transaction(root: Speaker, change: Change) -> None:
    text = "INSERT INTO t VALUES (1, repeat('x', 100000))"
    change("kv.transaction.max_bytes", "65536")
    assert _sqlstate(root, text) == "54000"
    change("kv.transaction.max_bytes", "200000")
    assert root.tag(text) == "INSERT 0 1"


@pytest.mark.setting("kv.transaction.attempts")
def test_how_often_a_transaction_is_run(node: Node, change: Change) -> None:
    runs = []

    def refuse(txn: Transaction) -> None:
        runs.append(1)
        raise RetryError("again")

    change("kv.transaction.attempts", "2")
    with pytest.raises(RetryError):
        node.store.transact(refuse)
    assert len(runs) == 2


@pytest.mark.setting("clock.max_offset")
def test_how_far_the_clock_may_be_ahead(
    node: Node, root: Speaker, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = []
    commit = node.store.engine.commit

    def noting(group: Group) -> Any:
        offsets.append(group.max_offset_micros)
        return commit(group)

    change("clock.max_offset", "750ms")
    monkeypatch.setattr(node.store.engine, "commit", noting)
    root.run("INSERT INTO t VALUES (2, '')")
    assert 750_000 in offsets
    assert node.store.max_offset_micros() == 750_000


@pytest.mark.setting("kv.watch.poll_interval")
def test_how_often_a_watch_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    env = ManualEnv()
    store = Store(SqliteEngine(":memory:", env), env)
    settings = ClusterSettings(store, Settings(DEFINITIONS))
    watch = store.watch([store.keyspace.table_span(1)], since_at=store.snapshot().at)
    looks = []
    look = Watch._look

    def counted(self: Watch) -> ChangeBatch | Gap | None:
        looks.append(self)
        return look(self)

    monkeypatch.setattr("tenure.kv.watch.Watch._look", counted)
    for seconds, times in (("5s", 3), ("2s", 6)):
        store.transact(partial(settings.set, name="kv.watch.poll_interval", text=seconds))
        settings.load()
        looks.clear()
        watch.next(10.0, changes_only=True)
        assert len(looks) == times


@pytest.mark.setting("liveness.ttl")
def test_how_long_a_session_lives(node: Node, change: Change) -> None:
    change("liveness.ttl", "500s")
    node.liveness.step()
    left = seconds_between(node.store.clock.now(), node.liveness.session().expires_at)
    assert 300 < left <= 500


@pytest.mark.setting("liveness.heartbeat")
def test_how_often_a_session_is_extended(node: Node, change: Change) -> None:
    change("liveness.heartbeat", "15s")
    assert node.liveness.step() == pytest.approx(15, rel=0.2)


def test_a_session_is_extended_in_time_where_the_heartbeat_is_longer_than_it_lives(
    node: Node, change: Change
) -> None:
    change("liveness.heartbeat", "100s")
    assert node.liveness.step() == pytest.approx(20, rel=0.2)  # half of the ttl


@pytest.mark.setting("sql.query_memory")
def test_how_much_memory_a_query_takes(root: Speaker, change: Change) -> None:
    root.run("SET tenure.executor = 'rows'")
    text = (
        "SELECT repeat('x', 100) || g FROM generate_series(1, 20000) g ORDER BY 1 DESC LIMIT 1 OFFSET 19000"
    )
    assert len(root.rows(text)) == 1
    change("sql.query_memory", "1048576")
    assert _sqlstate(root, text) == "53200"


@pytest.mark.setting("sql.session_memory")
@pytest.mark.setting("sql.user_memory")
@pytest.mark.parametrize("name", ["sql.session_memory", "sql.user_memory"])
def test_how_much_memory_cursors_take_together(root: Speaker, change: Change, name: str) -> None:
    declare = (
        "DECLARE {} SCROLL CURSOR FOR SELECT repeat('x', 1000) FROM generate_series(1, 50000); MOVE ALL IN {}"
    )
    change(name, str(90 << 20))  # for one, not for two
    root.run("BEGIN")
    root.run(declare.format("a", "a"))
    assert _sqlstate(root, declare.format("b", "b")) == "53200"
    root.run("ROLLBACK")
    assert root.session.memory.account.held_bytes == 0


@pytest.mark.setting("sql.node_memory")
def test_how_much_memory_a_node_has_when_it_refuses_more(root: Speaker, change: Change) -> None:
    root.run("SET tenure.executor = 'rows'")
    text = "SELECT repeat('x', 1000) || g FROM generate_series(1, 20000) g ORDER BY 1 DESC OFFSET 19999"
    assert len(root.rows(text)) == 1
    change("sql.node_memory", str(resident_bytes() // 2))
    assert _sqlstate(root, text) == "53200"


@pytest.mark.setting("lake.cache_memory")
@pytest.mark.setting("sql.columns_memory")
@pytest.mark.setting("sql.duckdb_memory")
def test_what_is_read_when_a_node_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_node(tmp_path) as node:
        speaker = Speaker(node)
        speaker.run("SET CLUSTER SETTING lake.cache_memory = 2000000")
        speaker.run("SET CLUSTER SETTING sql.columns_memory = 3000000")
        speaker.run("SET CLUSTER SETTING sql.duckdb_memory = 99000000")
        speaker.close()
    made: dict[str, dict[str, Any]] = {}

    def noting(kind: Callable[..., Any]) -> Callable[..., Any]:
        def make(*parts: Any, **named: Any) -> Any:
            made[kind.__name__] = named
            return kind(*parts, **named)

        return make

    monkeypatch.setattr("tenure.composition.table_layer.LakeBases", noting(LakeBases))
    monkeypatch.setattr("tenure.composition.sql_layer.Duck", noting(Duck))
    Node(
        NodeOptions(f"sqlite:{tmp_path}/store.db", listen=Listen(port=0), lake=f"{tmp_path}/lake"),
        SystemEnv(),
    ).stop()
    assert made["LakeBases"]["cache_bytes"] == 2_000_000
    assert made["Duck"]["cache_bytes"] == 3_000_000
    assert made["Duck"]["memory_bytes"] == 99_000_000
