"""Users: made, changed and dropped in the transaction of whoever says so."""

from collections.abc import Callable

import pytest

from tenure.base.errors import UserError
from tenure.base.timestamp import MAX_AT
from tenure.catalog.accounts.passwords import SALT_BYTES, stored_password
from tenure.catalog.accounts.users import User, Users
from tenure.kv.keys import CLUSTER_SECRETS, USERS
from tenure.kv.transaction import Transaction
from tests.unit.schema_change.clusters import SchemaNode

VERIFIER = stored_password("pencil", salt=bytes(SALT_BYTES))


@pytest.fixture
def users(node: SchemaNode) -> Users:
    return Users(node.store.keyspace)


def _user(node: SchemaNode, users: Users, name: str) -> User:
    user = users.get(node.store.snapshot(), name)
    assert user is not None
    return user


def _refusal(node: SchemaNode, work: Callable[[Transaction], object]) -> str:
    with pytest.raises(UserError) as caught:
        node.transact(work)
    return caught.value.sqlstate


@pytest.mark.invariant("root-stays")
def test_root_is_there_from_the_start(node: SchemaNode, users: Users) -> None:
    root = _user(node, users, "root")
    assert (root.verifier, root.is_superuser, root.can_login) == ("", True, True)
    assert [each.name for each in users.all(node.store.snapshot())] == ["root"]


@pytest.mark.invariant("root-stays")
def test_root_can_be_neither_dropped_nor_locked_out(node: SchemaNode, users: Users) -> None:
    assert _refusal(node, lambda txn: users.drop(txn, "root")) == "2BP01"
    assert _refusal(node, lambda txn: users.alter(txn, "root", is_superuser=False)) == "0A000"
    assert _refusal(node, lambda txn: users.alter(txn, "root", can_login=False)) == "0A000"


def test_a_user_is_there_once_its_transaction_has_committed(node: SchemaNode, users: Users) -> None:
    before = node.store.snapshot().at
    node.transact(lambda txn: users.create(txn, "ann", verifier=VERIFIER))
    ann = _user(node, users, "ann")
    assert (ann.verifier, ann.is_superuser, ann.can_login) == (VERIFIER, False, True)
    assert before < ann.created_at <= node.store.snapshot().at


def test_a_user_can_be_made_and_changed_in_one_transaction(node: SchemaNode, users: Users) -> None:
    def work(txn: Transaction) -> None:
        users.create(txn, "ann")
        users.alter(txn, "ann", verifier=VERIFIER, can_login=False)

    node.transact(work)
    ann = _user(node, users, "ann")
    assert (ann.verifier, ann.can_login) == (VERIFIER, False)
    assert ann.created_at < MAX_AT


def test_what_is_not_named_stays_as_it_is(node: SchemaNode, users: Users) -> None:
    node.transact(lambda txn: users.create(txn, "ann", verifier=VERIFIER))
    before = _user(node, users, "ann")
    node.transact(lambda txn: users.alter(txn, "ann", is_superuser=True))
    after = _user(node, users, "ann")
    assert (after.verifier, after.created_at, after.is_superuser) == (VERIFIER, before.created_at, True)


def test_a_password_can_be_taken_away(node: SchemaNode, users: Users) -> None:
    node.transact(lambda txn: users.create(txn, "ann", verifier=VERIFIER))
    node.transact(lambda txn: users.alter(txn, "ann", verifier=""))
    assert _user(node, users, "ann").verifier == ""


def test_a_dropped_user_is_gone(node: SchemaNode, users: Users) -> None:
    node.transact(lambda txn: users.create(txn, "ann"))
    node.transact(lambda txn: users.drop(txn, "ann"))
    assert users.get(node.store.snapshot(), "ann") is None


def test_a_name_that_is_taken_is_refused(node: SchemaNode, users: Users) -> None:
    node.transact(lambda txn: users.create(txn, "ann"))
    assert _refusal(node, lambda txn: users.create(txn, "ann")) == "42710"


def test_a_user_that_is_not_there_can_be_neither_altered_nor_dropped(node: SchemaNode, users: Users) -> None:
    assert _refusal(node, lambda txn: users.alter(txn, "bob", can_login=False)) == "42704"
    assert _refusal(node, lambda txn: users.drop(txn, "bob")) == "42704"


@pytest.mark.parametrize(
    ("name", "sqlstate"),
    [
        ("public", "42939"),
        ("none", "42939"),
        ("pg_monitor", "42939"),
        ("", "42602"),
        ("a\0b", "42602"),
        ("x" * 64, "42622"),
        ("é" * 32, "42622"),
        ("\udcff", "22023"),
    ],
)
def test_a_name_that_no_user_may_have_is_refused(
    node: SchemaNode, users: Users, name: str, sqlstate: str
) -> None:
    assert _refusal(node, lambda txn: users.create(txn, name)) == sqlstate


@pytest.mark.parametrize("name", ["", "x" * 100_000, "a\0b"])
def test_a_name_that_no_user_can_have_is_looked_up_without_harm(
    node: SchemaNode, users: Users, name: str
) -> None:
    assert users.get(node.store.snapshot(), name) is None


def test_the_store_takes_no_password(node: SchemaNode, users: Users) -> None:
    with pytest.raises(AssertionError):
        node.transact(lambda txn: users.create(txn, "ann", verifier="canary"))


def test_the_store_holds_no_password(node: SchemaNode, users: Users) -> None:
    kept = stored_password("canary", salt=bytes(SALT_BYTES))
    node.transact(lambda txn: users.create(txn, "ann", verifier=kept))
    keyspace = node.store.keyspace
    pairs = [
        pair
        for table in (USERS, CLUSTER_SECRETS)
        for pair in node.store.snapshot().scan(keyspace.table_span(table))
    ]
    assert pairs and not any(b"canary" in part for pair in pairs for part in pair)


def test_a_user_is_shown_without_its_verifier() -> None:
    assert VERIFIER not in repr(User("ann", VERIFIER))


def test_all_nodes_have_the_secret_of_whoever_asked_first(
    node: SchemaNode, other: SchemaNode, users: Users
) -> None:
    assert node.transact(lambda txn: users.secret(txn, b"first")) == b"first"
    theirs = Users(other.store.keyspace)
    assert other.transact(lambda txn: theirs.secret(txn, b"second")) == b"first"
