"""Users as a door sees them: a role, and the verifier of its password in a table of its own."""

import pytest

from tenure.catalog.accounts.passwords import SALT_BYTES, stored_password
from tenure.catalog.accounts.predefined_roles import PREDEFINED
from tenure.catalog.accounts.users import ROOT_ID, User, Users
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import DEFAULT_SCHEMA
from tenure.catalog.descriptors.role_records import Role
from tenure.kv.keys import CLUSTER_SECRETS, PASSWORDS, PRIVILEGES, ROLE_OBJECTS, ROLES, USERS
from tenure.kv.records import Records
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


@pytest.mark.invariant("root-stays")
def test_root_is_there_from_the_start(node: SchemaNode, users: Users) -> None:
    root = _user(node, users, "root")
    assert (root.verifier, root.is_superuser, root.can_login) == ("", True, True)
    names = [each.name for each in users.all(node.store.snapshot())]
    assert names == [*sorted(each.name for each in PREDEFINED), "root"]


def test_a_user_is_there_once_its_transaction_has_committed(node: SchemaNode, users: Users) -> None:
    before = node.store.snapshot().at
    node.transact(lambda txn: users.create(txn, Role("ann", 200, can_login=True), VERIFIER))
    ann = _user(node, users, "ann")
    assert (ann.verifier, ann.is_superuser, ann.can_login) == (VERIFIER, False, True)
    assert before < ann.created_at <= node.store.snapshot().at


def test_a_password_can_be_taken_away(node: SchemaNode, users: Users) -> None:
    node.transact(lambda txn: users.create(txn, Role("ann", 200), VERIFIER))
    node.transact(lambda txn: users.set_password(txn, "ann", ""))
    assert _user(node, users, "ann").verifier == ""


@pytest.mark.parametrize("name", ["", "x" * 100_000, "a\0b"])
def test_a_name_that_no_user_can_have_is_looked_up_without_harm(
    node: SchemaNode, users: Users, name: str
) -> None:
    assert users.get(node.store.snapshot(), name) is None


def test_the_store_takes_no_password(node: SchemaNode, users: Users) -> None:
    with pytest.raises(AssertionError):
        node.transact(lambda txn: users.set_password(txn, "ann", "canary"))


def test_the_store_holds_no_password_and_the_leased_catalog_no_verifier(
    node: SchemaNode, users: Users
) -> None:
    kept = stored_password("canary", salt=bytes(SALT_BYTES))
    node.transact(lambda txn: users.create(txn, Role("ann", 200), kept))
    keyspace, snapshot = node.store.keyspace, node.store.snapshot()
    stored = [
        pair for table in (PASSWORDS, CLUSTER_SECRETS) for pair in snapshot.scan(keyspace.table_span(table))
    ]
    assert stored and not any(b"canary" in part for pair in stored for part in pair)
    leased = [pair for span in Catalog(keyspace).spans for pair in snapshot.scan(span)]
    assert leased and not any(b"SCRAM" in part for pair in leased for part in pair)


def test_a_store_from_before_roles_gets_them_at_the_next_start(node: SchemaNode, users: Users) -> None:
    keyspace = node.store.keyspace
    former = Records(keyspace, USERS, User, key=("name",))

    def as_before(txn: Transaction) -> None:
        for table in (ROLES, PRIVILEGES, ROLE_OBJECTS, PASSWORDS):
            for key, _ in list(txn.scan(keyspace.table_span(table))):
                txn.delete(key)
        former.put(txn, User("root", is_superuser=True), stamp="created_at")
        former.put(txn, User("ann", VERIFIER, can_login=True), stamp="created_at")

    node.transact(as_before)
    catalog = Catalog(keyspace)
    node.transact(lambda txn: bootstrap(txn, keyspace, catalog))
    assert _user(node, users, "ann").verifier == VERIFIER
    assert not _user(node, users, "ann").is_superuser
    snapshot = node.store.snapshot()
    root = catalog.roles.role(snapshot, "root")
    assert root is not None and root.is_superuser and root.id == ROOT_ID
    assert DEFAULT_SCHEMA in {each.object for each in catalog.roles.objects(snapshot, "root")}
    assert catalog.roles.privileges(snapshot, DEFAULT_SCHEMA, 0) is not None
    node.transact(lambda txn: users.set_password(txn, "ann", ""))
    node.transact(lambda txn: bootstrap(txn, keyspace, catalog))
    assert _user(node, users, "ann").verifier == "", "it happens once"
