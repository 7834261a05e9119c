"""Reads that this node protects by itself: what one of them cannot have, the others get all the same."""

from collections.abc import Collection, Iterator

import pytest

from tenure.base.errors import RetryError
from tenure.base.settings import PROTECTED_RECORDS_MAX
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.transaction import Transaction
from tenure.retention.long_reads import LongReads, OpenRead
from tenure.retention.protections.protection_records import Mode
from tests.unit.retention.protecting import ProtectedStore

T, LATER = 200, 201


class Read:
    def __init__(
        self, node: ProtectedStore, at: Timestamp, *tables: int, may_write: bool = False, role: str = "ann"
    ) -> None:
        self._node = node
        self.role = role
        self._tables = tables
        self.at: Timestamp | None = at
        self.may_write = may_write
        self.allowed: list[ProtectedRead] = []

    def tables(self) -> Collection[Table]:
        found = [self._node.catalog.get(self._node.store.snapshot(), id) for id in self._tables]
        return [each for each in found if isinstance(each, Table)]

    def allow(self, protected: ProtectedRead) -> None:
        self.allowed.append(protected)


class Reading(ProtectedStore):
    """A node with a table and some open reads."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[object, OpenRead] = {}
        self.reads = LongReads(
            *(self.store, self.catalog, self.protections),
            *(lambda: self.open, lambda: SessionId(1, 1), lambda: self.settings),
        )
        self.set_ttl(10)
        self.create(T)

    def targets(self) -> list[tuple[Mode, tuple[int, ...]]]:
        return [(each.mode, each.objects) for each in self.state().records]


@pytest.fixture
def node() -> Iterator[Reading]:
    node = Reading()
    yield node
    node.engine.close()


@pytest.mark.invariant("long-read")
def test_a_table_that_came_after_the_read_had_begun_keeps_none_from_its_protection(node: Reading) -> None:
    """A block that only reads has used it in a later statement."""
    at = node.now()
    node.create(LATER)
    alone, both, other = Read(node, at, LATER), Read(node, at, LATER, T), Read(node, at, T)
    node.open |= {"alone": alone, "both": both, "other": other}
    node.env.advance(9)
    node.reads.step()
    assert node.targets() == [(Mode.AT, (T,))] * 2
    assert [len(each.allowed) for each in (alone, both, other)] == [0, 1, 1]
    node.open.clear()
    node.reads.step()
    assert node.targets() == []


@pytest.mark.invariant("long-read")
def test_a_conflict_of_one_read_s_protection_does_not_keep_others_from_theirs(
    node: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (Read(node, node.now(), T, may_write=True) for _ in range(2))
    node.open |= {"first": first, "second": second}
    node.env.advance(9)
    conflicts = [RetryError("somebody else was faster")]
    transact = node.store.transact

    def conflicting(work: object, **named: object) -> object:
        if conflicts:
            raise conflicts.pop()
        return transact(work, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(node.store, "transact", conflicting)
    node.reads.step()
    assert node.targets() == [(Mode.AFTER, (T,))]
    node.reads.step()
    assert node.targets() == [(Mode.AFTER, (T,))] * 2


@pytest.mark.invariant("long-read")
def test_no_role_takes_the_protections_of_all_long_reads(
    node: Reading, caplog: pytest.LogCaptureFixture
) -> None:
    node.settings = node.settings.with_value(PROTECTED_RECORDS_MAX, 16)
    for number in range(6):
        node.open[number] = Read(node, node.now(), T, role="eve")
    node.env.advance(9)
    node.reads.step()
    assert len(node.targets()) == 2
    assert '2 long reads of role "eve" are protected, and 2 are left for others' in caplog.text
    node.open |= {role: Read(node, node.now(), T, role=role) for role in ("ann", "")}
    node.env.advance(9)
    node.reads.step()
    assert len(node.targets()) == 4


def test_a_read_whose_history_is_gone_is_told_once_and_goes_on(
    node: Reading, caplog: pytest.LogCaptureFixture
) -> None:
    node.open["old"] = Read(node, node.now(), T)
    node.env.advance(60)
    node.transact(lambda txn: _tick(node, txn))
    for _ in range(3):
        node.reads.step()
    assert node.targets() == []
    assert caplog.text.count("is not protected") == 1


def _tick(node: Reading, txn: Transaction) -> None:
    txn.put(node.keyspace.key(99, ["tick"]), b"")
