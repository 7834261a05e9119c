"""Logins against a store, with the time in hand."""

import logging
from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import TenureError
from tenure.catalog.accounts.passwords import SALT_BYTES, stored_password
from tenure.catalog.accounts.users import Users
from tenure.catalog.descriptors.role_records import Role
from tenure.kv.store import Store
from tenure.pgwire.login.authenticator import Authenticator, Exchange
from tenure.pgwire.login.login_rules import LoginMode
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.pgwire.scram_client import ScramClient

HERE, THERE = "127.0.0.1", "192.0.2.1"
KEPT = stored_password("pencil", salt=bytes(SALT_BYTES))


@pytest.fixture
def env() -> ManualEnv:
    return ManualEnv()


@pytest.fixture
def store(env: ManualEnv) -> Iterator[Store]:
    engine = SqliteEngine(MEMORY, env)
    store = Store(engine, env)
    users = Users(store.keyspace)
    store.transact(users.create_root)
    store.transact(lambda txn: users.create(txn, Role("ann", 200, can_login=True), KEPT))
    store.transact(lambda txn: users.create(txn, Role("barred", 201), KEPT))
    yield store
    engine.close()


def authenticator(store: Store, env: ManualEnv, mode: LoginMode = LoginMode.LOCAL) -> Authenticator:
    users = Users(store.keyspace)
    secret = store.transact(lambda txn: users.secret(txn, b"secret"))
    return Authenticator(store, users, mode=mode, mock_secret=secret, monotonic=env.monotonic)


@pytest.fixture
def door(store: Store, env: ManualEnv) -> Authenticator:
    return authenticator(store, env)


def _begin(door: Authenticator, user: str = "ann", address: str = HERE) -> Exchange:
    exchange = door.login(user=user, address=address, binding=None)
    assert exchange is not None
    return exchange


def _finish(exchange: Exchange, password: str) -> bool:
    client = ScramClient(password)
    return client.accepts(exchange.finish(client.final(exchange.begin(client.mechanism, client.first()))))


def _refusal(exchange: Exchange, password: str = "wrong") -> TenureError:
    with pytest.raises(TenureError) as caught:
        _finish(exchange, password)
    return caught.value


def test_root_is_let_in_without_a_password_on_this_machine(door: Authenticator) -> None:
    assert door.login(user="root", address=HERE, binding=None) is None


def test_a_user_gets_in_with_the_right_password(door: Authenticator) -> None:
    assert _finish(_begin(door), "pencil")


def test_a_new_password_counts_from_its_commit_on(door: Authenticator, store: Store) -> None:
    users = Users(store.keyspace)
    store.transact(lambda txn: users.set_password(txn, "ann", stored_password("new", salt=bytes(SALT_BYTES))))
    assert _refusal(_begin(door), "pencil").sqlstate == "28P01"
    assert _finish(_begin(door), "new")


def test_an_unknown_user_fails_like_a_known_one(door: Authenticator) -> None:
    known, unknown = _refusal(_begin(door, "ann")), _refusal(_begin(door, "nob"))
    assert str(known).replace("ann", "nob") == str(unknown)
    assert known.sqlstate == unknown.sqlstate == "28P01"


def test_a_user_that_may_not_log_in_hears_so_once_it_has_proved_itself(door: Authenticator) -> None:
    assert _refusal(_begin(door, "barred"), "wrong").sqlstate == "28P01"
    assert _refusal(_begin(door, "barred"), "pencil").sqlstate == "28000"


def test_plaintext_from_elsewhere_is_refused(store: Store, env: ManualEnv) -> None:
    door = authenticator(store, env, LoginMode.CERTIFICATE)
    with pytest.raises(TenureError) as caught:
        door.login(user="ann", address=THERE, binding=None)
    assert caught.value.sqlstate == "28000"


def test_tls_with_nothing_to_bind_to_is_tls_all_the_same(store: Store, env: ManualEnv) -> None:
    exchange = authenticator(store, env, LoginMode.CERTIFICATE).login(user="ann", address=THERE, binding=b"")
    assert exchange is not None and exchange.mechanisms == ("SCRAM-SHA-256",)


def test_guessing_gets_slow_and_the_right_password_ends_it(door: Authenticator, env: ManualEnv) -> None:
    for _ in range(8):
        exchange = _begin(door)
        env.sleep(exchange.wait_seconds())
        _refusal(exchange)
    last = _begin(door)
    waited = last.wait_seconds()
    assert waited == 4.0
    env.sleep(waited)
    assert _finish(last, "pencil")
    assert _begin(door).wait_seconds() == 0


def test_a_refusal_says_how_long_to_hold_it_back(door: Authenticator) -> None:
    errors = [_refusal(_begin(door)) for _ in range(5)]
    assert [getattr(error, "delay_seconds", None) for error in errors] == [0, 0, 0, 0.25, 0.5]


def test_unknown_users_slow_down_the_same(door: Authenticator) -> None:
    waits: dict[str, float] = {}
    for user in ("ann", "nobody"):
        for _ in range(6):
            _refusal(_begin(door, user))
        waits[user] = _begin(door, user).wait_seconds()
    assert waits["ann"] == waits["nobody"] > 0


def test_a_failed_login_is_logged_on_one_line_without_secrets(
    door: Authenticator, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        _refusal(_begin(door, "ann\nforged: line"), "canary")
    (line,) = caplog.messages
    assert "\n" not in line and "canary" not in line
    assert HERE in line
