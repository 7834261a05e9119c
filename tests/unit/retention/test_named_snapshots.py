"""Named snapshots among the other protections."""

import pytest

from tenure.base.errors import TooManyProtections
from tenure.base.settings import PROTECTED_RECORDS_MAX
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode
from tenure.retention.snapshots import NamedSnapshots
from tests.unit.retention.protecting import ProtectedStore

TABLE = 200


def test_snapshots_leave_half_of_the_protections_to_others(node: ProtectedStore) -> None:
    node.create(TABLE)
    node.settings = node.settings.with_value(PROTECTED_RECORDS_MAX, 4)
    named = NamedSnapshots(node.keyspace, node.protections, lambda: node.settings)
    at = node.now()
    for name in ("a", "b"):
        node.transact(
            lambda txn, name=name: named.create(txn, name, at, TABLE, "ann", is_bounded=False)  # type: ignore[misc]
        )

    def one_more(txn: Transaction) -> None:
        with pytest.raises(TooManyProtections, match="there would be 3 named snapshots, and 2 are allowed"):
            named.create(txn, "c", at, TABLE, "ann", is_bounded=False)
        named.drop(txn, "a")  # the transaction is still usable
        named.create(txn, "c", at, TABLE, "ann", is_bounded=False)

    node.transact(one_more)
    for _ in range(2):
        node.protect(at, Mode.AT, TABLE)
    assert node.meta().records == 4


def test_no_role_takes_all_snapshots(node: ProtectedStore) -> None:
    node.create(TABLE)
    node.settings = node.settings.with_value(PROTECTED_RECORDS_MAX, 16)
    named = NamedSnapshots(node.keyspace, node.protections, lambda: node.settings)
    at = node.now()

    def create(owner: str, name: str) -> bool:
        try:
            node.transact(lambda txn: named.create(txn, name, at, TABLE, owner))
        except TooManyProtections:
            return False
        return True

    taken = [sum(create(owner, f"{owner}{number}") for number in range(9)) for owner in ("ann", "bob", "eve")]
    assert taken == [4, 2, 1]
