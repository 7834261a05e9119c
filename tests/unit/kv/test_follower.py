"""Followers: what is in memory is the state of the store, whatever became of its history."""

from collections.abc import Iterator, Sequence

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import BaseMoved, StoreError
from tenure.kv.follower import ChangeWait, Follower
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.thresholds import clean, publish_threshold
from tenure.storage.engine import Revision
from tests.unit.kv.rows import HEAD, KEYS, TABLE, row, write


class Mirror:
    """Keeps the rows of the table in memory, and counts how it came by them."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.loads = 0
        self.batches = 0
        self.error: Exception | None = None
        """Raised by the next `apply`, after it has taken in half."""

    def load(self, snapshot: Snapshot) -> None:
        self.loads += 1
        self.rows = dict(snapshot.scan(TABLE))

    def apply(self, revisions: Sequence[Revision]) -> None:
        self.batches += 1
        for key, _, value in revisions:
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
            if self.error is not None:
                error, self.error = self.error, None
                raise error


@pytest.fixture
def mirror() -> Mirror:
    return Mirror()


@pytest.fixture
def follower(store: Store, mirror: Mirror) -> Iterator[Follower]:
    follower = Follower(store, [TABLE], mirror.load, mirror.apply)
    yield follower
    follower.close()


def rows(**values: bytes) -> dict[bytes, bytes]:
    return {row(name): value for name, value in values.items()}


def raise_threshold(store: Store) -> None:
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, txn.read_at))


def test_the_first_step_loads(store: Store, mirror: Mirror, follower: Follower) -> None:
    write(store, a=b"1")
    assert follower.step(0)
    assert mirror.rows == rows(a=b"1") and mirror.loads == 1
    assert follower.resolved_at == store.snapshot().at


def test_later_steps_apply_what_has_changed(store: Store, mirror: Mirror, follower: Follower) -> None:
    write(store, a=b"1", b=b"1")
    follower.load()
    at = write(store, a=None, c=b"2")
    assert follower.step(0)
    assert mirror.rows == rows(b=b"1", c=b"2") and (mirror.loads, mirror.batches) == (1, 1)
    assert follower.resolved_at == at


def test_a_step_without_changes_waits_and_says_so(store: Store, env: ManualEnv, follower: Follower) -> None:
    follower.load()
    assert not follower.step(0.5)
    assert env.monotonic() == pytest.approx(0.5)


@pytest.mark.invariant("follower")
def test_a_threshold_above_its_position_makes_it_load_again(
    store: Store, mirror: Mirror, follower: Follower
) -> None:
    write(store, a=b"1", b=b"1")
    follower.load()
    write(store, a=None, c=b"2")
    raise_threshold(store)
    assert follower.step(0)
    assert mirror.rows == rows(b=b"1", c=b"2") and (mirror.loads, mirror.batches) == (2, 0)


@pytest.mark.invariant("follower")
def test_a_cleaned_mark_above_its_position_makes_it_load_again(
    store: Store, mirror: Mirror, follower: Follower
) -> None:
    follower.load()
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    with pytest.raises(BaseMoved):  # this store knows no lake to load from
        follower.step(0)
    assert mirror.loads == 2


def test_after_a_gap_it_goes_on_by_changes(
    store: Store, env: ManualEnv, mirror: Mirror, follower: Follower
) -> None:
    follower.load()
    write(store, a=b"1")
    raise_threshold(store)
    follower.step(0)
    write(store, b=b"2")
    assert follower.step(0)
    assert mirror.rows == rows(a=b"1", b=b"2") and (mirror.loads, mirror.batches) == (2, 1)
    assert not follower.step(0.5)
    assert env.monotonic() == pytest.approx(0.5), "it does not wait"


@pytest.mark.invariant("follower")
def test_an_error_in_the_middle_of_changes_makes_the_next_step_load(
    store: Store, mirror: Mirror, follower: Follower
) -> None:
    follower.load()
    write(store, a=b"1", b=b"2")
    mirror.error = StoreError("half of it")
    with pytest.raises(StoreError):
        follower.step(0)
    assert follower.step(0)
    assert mirror.rows == rows(a=b"1", b=b"2") and mirror.loads == 2


def test_without_a_way_to_apply_changes_it_loads(store: Store, mirror: Mirror) -> None:
    follower = Follower(store, [TABLE], mirror.load)
    follower.load()
    write(store, a=b"1")
    assert follower.step(0)
    assert mirror.rows == rows(a=b"1") and mirror.loads == 2
    follower.close()


def test_a_wait_ends_with_a_change(store: Store, env: ManualEnv) -> None:
    changes = ChangeWait(store, [TABLE], since_at=store.snapshot().at)
    write(store, a=b"1")
    changes.wait(60)
    assert env.monotonic() == 0
    changes.close()


def test_a_wait_ends_with_a_gap_once(store: Store, env: ManualEnv) -> None:
    changes = ChangeWait(store, [TABLE], since_at=store.snapshot().at)
    write(store, a=b"1")
    raise_threshold(store)
    changes.wait(60)
    assert env.monotonic() == 0
    changes.wait(0.5)
    assert env.monotonic() == pytest.approx(0.5), "it spins"
    changes.close()
