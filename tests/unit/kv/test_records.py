"""Typed records: round trips, formats old and new, commit timestamps inside."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import CorruptData, NewerFormat
from tenure.base.timestamp import MAX_AT, add_seconds
from tenure.kv.records import Record, Records, replace
from tenure.kv.store import Store
from tests.unit.kv.rows import KEYS

TABLE = 50


class Lease(Record, frozen=True):
    node: int
    taken_at: int
    expires_at: int = 0
    note: str = ""


LEASES = Records(KEYS, TABLE, Lease, key=("node", "taken_at"))


def put(store: Store, *leases: Lease) -> None:
    txn = store.begin()
    for lease in leases:
        LEASES.put(txn, lease)
    txn.commit()


def test_a_record_comes_back_as_it_was(store: Store) -> None:
    lease = Lease(1, 5, 9, "mine")
    put(store, lease)
    assert LEASES.get(store.begin(), 1, 5) == lease
    assert LEASES.get(store.snapshot(), 1, 5) == lease


def test_a_missing_record_is_none(store: Store) -> None:
    assert LEASES.get(store.begin(), 1, 5) is None


def test_a_record_is_read_back_in_the_transaction_that_wrote_it(store: Store) -> None:
    txn = store.begin()
    LEASES.put(txn, Lease(1, 5))
    assert LEASES.get(txn, 1, 5) == Lease(1, 5)


def test_a_deleted_record_is_gone(store: Store) -> None:
    put(store, Lease(1, 5))
    store.transact(lambda txn: LEASES.delete(txn, 1, 5))
    assert LEASES.get(store.begin(), 1, 5) is None


@given(
    st.builds(Lease, st.integers(0, 2**31), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.text())
)
def test_every_record_survives_encoding(lease: Lease) -> None:
    assert LEASES.decode(LEASES.encode(lease)) == lease


def test_a_scan_gives_all_records_in_key_order(store: Store) -> None:
    put(store, Lease(2, 1), Lease(1, 300), Lease(1, 5))
    assert list(LEASES.scan(store.begin())) == [Lease(1, 5), Lease(1, 300), Lease(2, 1)]


def test_a_scan_of_a_prefix_gives_the_records_below_it(store: Store) -> None:
    put(store, Lease(1, 5), Lease(1, 6), Lease(12, 1), Lease(2, 1))
    assert list(LEASES.scan(store.snapshot(), 1)) == [Lease(1, 5), Lease(1, 6)]


def test_a_scan_can_be_limited_and_go_backward(store: Store) -> None:
    put(store, Lease(1, 5), Lease(1, 6), Lease(1, 7))
    assert list(LEASES.scan(store.begin(), 1, limit=1, reverse=True)) == [Lease(1, 7)]


def test_the_whole_key_is_needed_to_get_a_record(store: Store) -> None:
    with pytest.raises(AssertionError):
        LEASES.get(store.begin(), 1)


def test_a_field_of_the_value_can_be_the_commit_timestamp(store: Store) -> None:
    ttl = add_seconds(0, 40)
    txn = store.begin()
    LEASES.put(txn, Lease(1, 5), stamp="expires_at", plus=ttl)
    at = txn.commit()
    assert LEASES.get(store.begin(), 1, 5) == Lease(1, 5, at + ttl)


def test_a_field_of_the_key_can_be_the_commit_timestamp(store: Store) -> None:
    txn = store.begin()
    LEASES.put(txn, Lease(1, 0), stamp="taken_at")
    at = txn.commit()
    assert LEASES.get(store.begin(), 1, at) == Lease(1, at)
    assert list(LEASES.scan(store.begin(), 1)) == [Lease(1, at)]


def test_a_stamped_key_can_lie_ahead_of_the_commit(store: Store) -> None:
    txn = store.begin()
    LEASES.put(txn, Lease(1, 0), stamp="taken_at", plus=7)
    at = txn.commit()
    assert LEASES.get(store.begin(), 1, at + 7) == Lease(1, at + 7)


@pytest.mark.parametrize("node", [0, 1, 255, 256, 2**31])
def test_the_place_of_a_stamped_key_follows_the_columns_before_it(store: Store, node: int) -> None:
    txn = store.begin()
    LEASES.put(txn, Lease(node, 0), stamp="taken_at")
    at = txn.commit()
    assert LEASES.get(store.begin(), node, at) == Lease(node, at)


@pytest.mark.parametrize("lease", [Lease(1, 0, MAX_AT), Lease(MAX_AT, 0), Lease(MAX_AT, 0, MAX_AT)])
def test_a_record_may_hold_the_bytes_that_stand_in_for_its_stamp(store: Store, lease: Lease) -> None:
    txn = store.begin()
    LEASES.put(txn, lease, stamp="taken_at")
    at = txn.commit()
    assert list(LEASES.scan(store.snapshot())) == [replace(lease, taken_at=at)]


class LeaseThree(Record, frozen=True):
    node: int
    taken_at: int
    seconds: float
    owner: str


def add_seconds_field(fields: list[object]) -> list[object]:
    return [*fields, 40.0]


def add_owner(fields: list[object]) -> list[object]:
    return [*fields, "nobody"]


LEASES_THREE = Records(
    KEYS,
    TABLE,
    LeaseThree,
    key=("node", "taken_at"),
    format=3,
    upgrades={1: add_seconds_field, 2: add_owner},
)


def stored(number: int, *fields: object) -> bytes:
    return bytes([number]) + msgspec.msgpack.encode(fields)


def test_an_older_format_is_upgraded_step_by_step() -> None:
    assert LEASES_THREE.decode(stored(1, 1, 5)) == LeaseThree(1, 5, 40.0, "nobody")
    assert LEASES_THREE.decode(stored(2, 1, 5, 9.0)) == LeaseThree(1, 5, 9.0, "nobody")
    assert LEASES_THREE.decode(stored(3, 1, 5, 9.0, "me")) == LeaseThree(1, 5, 9.0, "me")


def test_a_record_with_fewer_fields_takes_the_defaults() -> None:
    assert LEASES.decode(stored(1, 1, 5)) == Lease(1, 5, 0, "")


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(NewerFormat) as caught:
        LEASES.decode(stored(2, 1, 5, 0, "", "unheard of"))
    assert caught.value.sqlstate == "0A000"
    assert "Lease" in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x01",
        b"\x01\xc1",
        LEASES.encode(Lease(1, 5))[:-1],
        stored(1, "a", 5),
        stored(1, 1),
        b"\x01" + msgspec.msgpack.encode("text"),
    ],
)
def test_a_corrupt_record_is_said_to_be_corrupt(value: bytes) -> None:
    with pytest.raises(CorruptData) as caught:
        LEASES.decode(value)
    assert caught.value.sqlstate == "XX001"
    assert "Lease" in str(caught.value)


@pytest.mark.parametrize("value", [b"\x01\xc1", stored(1, "a", 5), b"\x02" + msgspec.msgpack.encode("text")])
def test_a_corrupt_record_of_an_older_format_is_said_to_be_corrupt(value: bytes) -> None:
    with pytest.raises(CorruptData):
        LEASES_THREE.decode(value)


def test_a_format_that_never_was_is_said_to_be_corrupt() -> None:
    with pytest.raises(CorruptData):
        LEASES.decode(stored(0, 1, 5))
