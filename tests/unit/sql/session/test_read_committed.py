"""READ COMMITTED blocks: how they are chosen, and clients that race for the same rows, on both engines.

What one session sees of another, step by step, is in `tests/scripts/isolation`.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tenure.catalog.descriptors.definitions import Table
from tenure.table import new_keys
from tenure.table.consistency import check_indexes
from tests.postgres_server import Server, fresh_database
from tests.unit.sql.served import Served, serving

CLIENTS = 8
Client = psycopg.Connection[Any]
READ_COMMITTED = "-c default_transaction_isolation=read\\ committed"


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("read_committed")) as served:
        yield served


@pytest.fixture(scope="module")
def over_postgres(tmp_path_factory: pytest.TempPathFactory, postgres: Server) -> Iterator[Served]:
    with (
        fresh_database(postgres) as store,
        serving(tmp_path_factory.mktemp("read_committed"), store=store) as served,
    ):
        yield served


@pytest.fixture(params=["sqlite", "over_postgres"])
def served(request: pytest.FixtureRequest) -> Served:
    served: Served = request.getfixturevalue(request.param)
    for table in ("c", "p", "history", "t"):
        served.tag(f"DROP TABLE IF EXISTS {table}")
    return served


def race(served: Served, run: Callable[[Client, int], None], **options: str) -> None:
    """Runs a function for each of several clients at once; raises the first error."""

    def of_client(number: int) -> None:
        with served.connect(**options) as client:
            run(client, number)

    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(of_client, range(CLIENTS)))


def until_committed(client: Client, *statements: str) -> None:
    """Tries a block again that is refused: in serializable ones, or while nodes do not know of each other."""
    while True:
        try:
            with client.transaction():
                for statement in statements:
                    client.execute(statement.encode())
            return
        except errors.SerializationFailure:
            continue


def wrong_entries(served: Served, name: str) -> list[str]:
    """Entries of indexes that no row has, and rows without theirs."""
    node, snapshot = served.node, served.node.store.snapshot()
    ((id,),) = served.rows(f"SELECT '{name}'::regclass::oid::bigint")
    table = node.catalog.get(snapshot, id)
    assert isinstance(table, Table)
    return check_indexes(snapshot, node.layouts.of(table), node.context())


# ── how it is chosen ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("begin", "shown", "sees_new_rows"),
    [
        ("BEGIN", "serializable", False),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", "repeatable read", False),
        ("BEGIN ISOLATION LEVEL READ COMMITTED", "read committed", True),
        ("BEGIN ISOLATION LEVEL READ UNCOMMITTED", "read uncommitted", True),
        ("BEGIN; SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "read committed", True),
        ("START TRANSACTION; SET transaction_isolation = 'read committed'", "read committed", True),
    ],
)
def test_a_block_chooses_its_isolation(sqlite: Served, begin: str, shown: str, sees_new_rows: bool) -> None:
    sqlite.tag("DROP TABLE IF EXISTS t")
    sqlite.tag("CREATE TABLE t (id int PRIMARY KEY)")
    with sqlite.connect() as client:
        for statement in begin.split("; "):
            client.execute(statement.encode())
        assert client.execute("SHOW transaction_isolation").fetchall() == [(shown,)]
        assert client.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        sqlite.tag("INSERT INTO t VALUES (1)")
        assert client.execute("SELECT count(*) FROM t").fetchall() == [(int(sees_new_rows),)]


def test_the_isolation_cannot_change_after_a_query(sqlite: Served) -> None:
    with sqlite.connect() as client:
        client.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        client.execute("SELECT 1 FROM pg_class LIMIT 1")
        with pytest.raises(errors.ActiveSqlTransaction):
            client.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")


def test_a_session_chooses_when_it_is_opened(sqlite: Served) -> None:
    with sqlite.connect(options=READ_COMMITTED) as client, client.transaction():
        assert client.execute("SHOW transaction_isolation").fetchall() == [("read committed",)]


@pytest.mark.setting("sql.default_transaction_isolation")
def test_the_cluster_chooses_for_sessions_that_say_nothing(sqlite: Served) -> None:
    sqlite.tag("SET CLUSTER SETTING sql.default_transaction_isolation = 'Read Committed'")
    try:
        with sqlite.connect() as client:
            assert client.execute("SHOW default_transaction_isolation").fetchall() == [("read committed",)]
            client.execute("SET default_transaction_isolation = serializable")
            client.execute("RESET default_transaction_isolation")
            assert client.execute("SHOW transaction_isolation").fetchall() == [("read committed",)]
        with sqlite.connect(options="-c default_transaction_isolation=serializable") as client:
            assert client.execute("SHOW transaction_isolation").fetchall() == [("serializable",)]
    finally:
        sqlite.tag("RESET CLUSTER SETTING sql.default_transaction_isolation")
    refused = sqlite.refusal("SET CLUSTER SETTING sql.default_transaction_isolation = 'chaos'")
    assert refused.sqlstate == "22023"


# ── the catalog ────────────────────────────────────────────────────────────────────────────────


def test_what_a_block_has_not_used_before_is_of_the_newest_catalog(sqlite: Served) -> None:
    for table in ("used", "changed", "fresh"):
        sqlite.tag(f"DROP TABLE IF EXISTS {table}")
    sqlite.tag("CREATE TABLE used (id int PRIMARY KEY)")
    sqlite.tag("CREATE TABLE changed (id int PRIMARY KEY)")
    sqlite.tag("INSERT INTO used VALUES (1)")
    with sqlite.connect(options=READ_COMMITTED) as client, client.transaction():
        client.execute("SELECT * FROM used")
        sqlite.tag("ALTER TABLE changed ADD COLUMN v int DEFAULT 5")
        sqlite.tag("INSERT INTO changed VALUES (1)")
        sqlite.tag("CREATE TABLE fresh (id int PRIMARY KEY REFERENCES changed)")
        assert client.execute("SELECT * FROM changed").fetchall() == [(1, 5)]
        client.execute("INSERT INTO fresh VALUES (1)")
        assert client.execute("SELECT * FROM used JOIN fresh USING (id)").fetchall() == [(1,)]
    assert sqlite.rows("SELECT * FROM fresh") == [(1,)]


def test_a_table_stays_as_the_block_has_used_it_and_no_other_session_is_misled(sqlite: Served) -> None:
    sqlite.tag("DROP TABLE IF EXISTS used")
    sqlite.tag("DROP TABLE IF EXISTS fresh")
    sqlite.tag("CREATE TABLE used (id int PRIMARY KEY)")
    sqlite.tag("INSERT INTO used VALUES (1)")
    with ThreadPoolExecutor(1) as thread, sqlite.connect(options=READ_COMMITTED) as client:
        with client.transaction():
            client.execute("SELECT * FROM used")
            altered = thread.submit(sqlite.tag, "ALTER TABLE used ADD COLUMN v int DEFAULT 5")
            with sqlite.connect() as other:
                other.execute("CREATE TABLE fresh (id int PRIMARY KEY)")
                assert client.execute("SELECT * FROM used LEFT JOIN fresh USING (id)").fetchall() == [(1,)]
                assert other.execute("SELECT * FROM used LEFT JOIN fresh USING (id)").fetchall() == [(1,)]
            client.execute("INSERT INTO used VALUES (2)")
        altered.result(timeout=30)
        assert client.execute("SELECT * FROM used").fetchall() == [(1, 5), (2, 5)]


# ── races ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("statement-proofs")
def test_no_increment_is_lost_and_nobody_is_refused(served: Served) -> None:
    served.tag("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)")
    served.tag("INSERT INTO t VALUES (1, 0), (2, 0)")

    def increment(client: Client, number: int) -> None:
        for turn in range(5):
            with client.transaction():
                client.execute("UPDATE t SET n = n + 1 WHERE id = 1")
                assert client.execute("SELECT count(*) FROM t").fetchone() == (2,)
            with client.transaction():  # found by a scan, in the same order by all
                client.execute("UPDATE t SET n = n + 1 WHERE n >= 0 AND id = 1 + %s", [(number + turn) % 2])

    race(served, increment, options=READ_COMMITTED)
    assert served.rows("SELECT sum(n) FROM t") == [(CLIENTS * 10,)]


@pytest.mark.invariant("I2")
def test_no_increment_is_lost_in_serializable_blocks(served: Served) -> None:
    served.tag("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)")
    served.tag("INSERT INTO t VALUES (1, 0)")

    def increment(client: Client, number: int) -> None:
        for _ in range(5):
            until_committed(client, "UPDATE t SET n = n + 1")

    race(served, increment)
    assert served.rows("SELECT n FROM t") == [(CLIENTS * 5,)]


def test_tpc_b_on_few_rows_meets_no_conflict(served: Served) -> None:
    served.tag("CREATE TABLE t (id int PRIMARY KEY, kind text, balance int NOT NULL)")
    served.tag("CREATE TABLE history (account int, delta int)")
    served.tag("INSERT INTO t SELECT n, 'account', 0 FROM generate_series(1, 4) n")
    served.tag("INSERT INTO t VALUES (10, 'teller', 0), (11, 'teller', 0), (20, 'branch', 0)")

    def transact(client: Client, number: int) -> None:
        for turn in range(5):
            account, teller, delta = 1 + (number + turn) % 4, 10 + number % 2, number + turn
            add = "UPDATE t SET balance = balance + %s WHERE id = %s"
            with client.transaction():
                client.execute(add, [delta, account])
                client.execute("SELECT balance FROM t WHERE id = %s", [account])
                client.execute(add, [delta, teller])
                client.execute(add, [delta, 20])
                client.execute("INSERT INTO history VALUES (%s, %s)", [account, delta])

    race(served, transact, options=READ_COMMITTED)
    total = served.rows("SELECT sum(delta) FROM history")
    assert served.rows("SELECT balance FROM t WHERE kind = 'branch'") == total
    assert served.rows("SELECT sum(balance) FROM t WHERE kind = 'account'") == total
    assert served.rows("SELECT sum(balance) FROM t WHERE kind = 'teller'") == total


def get_or_create(client: Client, email: str, *, lock: str = "") -> int:
    """As Django does it: look, insert after a savepoint, look again if somebody was faster."""
    find = f"SELECT id FROM t WHERE email = %s {lock}".encode()
    found = client.execute(find, [email]).fetchone()
    if found is None:
        try:
            with client.transaction():
                found = client.execute("INSERT INTO t (email) VALUES (%s) RETURNING id", [email]).fetchone()
        except errors.UniqueViolation:
            found = client.execute(find, [email]).fetchone()
    assert found is not None
    id: int = found[0]
    return id


def test_get_or_create_meets_no_conflict(served: Served) -> None:
    served.tag("CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE)")
    ids: list[list[int]] = [[] for _ in range(CLIENTS)]

    def create(client: Client, number: int) -> None:
        for turn in range(6):
            with client.transaction():
                ids[number].append(get_or_create(client, f"e{turn}"))

    race(served, create, options=READ_COMMITTED)
    assert all(each == ids[0] for each in ids)
    assert served.rows("SELECT count(*) FROM t") == [(6,)]


def test_update_or_create_meets_no_conflict(served: Served) -> None:
    served.tag("CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE, n int)")

    def update(client: Client, number: int) -> None:
        for turn in range(5):
            with client.transaction():
                id = get_or_create(client, f"e{turn % 2}", lock="FOR UPDATE")
                client.execute("UPDATE t SET n = coalesce(n, 0) + 1 WHERE id = %s", [id])

    race(served, update, options=READ_COMMITTED)
    assert served.rows("SELECT sum(n) FROM t") == [(CLIENTS * 5,)]


def test_upserts_meet_no_conflict(served: Served) -> None:
    served.tag("CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE, n int)")

    def upsert(client: Client, number: int) -> None:
        for turn in range(5):
            with client.transaction():
                client.execute(
                    "INSERT INTO t (email, n) VALUES (%s, 1) ON CONFLICT (email) DO UPDATE SET n = t.n + 1",
                    [f"e{turn % 2}"],
                )

    race(served, upsert, options=READ_COMMITTED)
    assert served.rows("SELECT count(*), sum(n) FROM t") == [(2, CLIENTS * 5)]


@pytest.mark.invariant("foreign-keys")
def test_references_and_unique_keys_hold_whoever_comes_first(served: Served) -> None:
    served.tag("CREATE TABLE p (id int PRIMARY KEY, v int NOT NULL)")
    served.tag("CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, u int UNIQUE)")
    served.tag("INSERT INTO p VALUES (1, 0), (2, 0)")
    refused = (errors.UniqueViolation, errors.ForeignKeyViolation, errors.DeadlockDetected)

    def meddle(client: Client, number: int) -> None:
        for turn in range(6):
            parent = 1 + (number + turn) % 2
            try:
                with client.transaction():
                    client.execute("UPDATE p SET v = v + 1 WHERE id = %s", [3 - parent])
                    if (number + turn) % 4 == 0:
                        client.execute("DELETE FROM p WHERE id = %s", [parent])
                        client.execute("INSERT INTO p VALUES (%s, 0)", [parent])
                    else:
                        client.execute(
                            "INSERT INTO c VALUES (%s, %s, %s)",
                            [number * 100 + turn, parent, (number * turn) % 5],
                        )
            except refused:
                pass

    race(served, meddle, options=READ_COMMITTED)
    assert served.rows("SELECT count(*) FROM c WHERE p NOT IN (SELECT id FROM p)") == [(0,)]
    assert served.rows("SELECT u FROM c GROUP BY u HAVING count(*) > 1") == []
    assert wrong_entries(served, "c") == wrong_entries(served, "p") == []


def test_workers_of_a_queue_take_each_row_once(served: Served) -> None:
    served.tag("CREATE TABLE t (id int PRIMARY KEY, state text NOT NULL)")
    served.tag("INSERT INTO t SELECT n, 'new' FROM generate_series(1, 24) n")
    taken: list[int] = []

    def work(client: Client, number: int) -> None:
        while True:
            with client.transaction():
                found = client.execute(
                    "UPDATE t SET state = 'done' WHERE id = (SELECT id FROM t WHERE state = 'new' "
                    "ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
                ).fetchone()
            if found is None:
                return
            taken.append(found[0])

    race(served, work, options=READ_COMMITTED)
    assert sorted(taken) == list(range(1, 25))


@pytest.mark.invariant("statement-proofs")
def test_clients_of_two_nodes_lose_no_increment(tmp_path: Path) -> None:
    with serving(tmp_path) as first, serving(tmp_path) as second:
        first.tag("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)")
        first.tag("INSERT INTO t VALUES (1, 0), (2, 0)")

        point = "UPDATE t SET n = n + 1 WHERE id = 2"

        def increment(number: int) -> None:
            with (first, second)[number % 2].connect(options=READ_COMMITTED) as client:
                for _ in range(5):
                    until_committed(client, "UPDATE t SET n = n + 1 WHERE n >= 0 AND id = 1", point)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(increment, range(4)))
        assert first.rows("SELECT n FROM t") == [(20,), (20,)]


@pytest.mark.parametrize("rows_max", [10_000, 2])
def test_a_key_of_many_that_came_meanwhile_is_told_or_refused(
    sqlite: Served, rows_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so many are kept to be looked at again; of others the commit only knows that one has changed."""
    monkeypatch.setattr(new_keys, "GUARDED_MAX", rows_max)
    sqlite.tag("DROP TABLE IF EXISTS t")
    sqlite.tag("CREATE TABLE t (id int PRIMARY KEY)")
    with sqlite.connect(options=READ_COMMITTED) as client:
        client.execute("BEGIN")
        client.execute("INSERT INTO t SELECT n FROM generate_series(1, 3) n")
        sqlite.tag("INSERT INTO t VALUES (3)")
        with pytest.raises(errors.UniqueViolation if rows_max > 3 else errors.SerializationFailure):
            client.execute("COMMIT")
    assert sqlite.rows("SELECT * FROM t") == [(3,)]
