"""Protections: what is promised, what is refused, what the meta record counts."""

import pytest

from tenure.base.errors import (
    DeadlinePassed,
    InvalidParameter,
    ProtectionNotFound,
    RetryError,
    SnapshotTooOld,
    TooManyProtections,
    UndefinedObject,
    WrongObjectType,
    WrongState,
)
from tenure.base.settings import PROTECTED_RECORDS_MAX, PROTECTED_SPANS_MAX
from tenure.base.timestamp import add_seconds
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    DescriptorState,
    Sequence,
    TypeRef,
)
from tenure.catalog.descriptors.protection_meta import ProtectionMeta
from tenure.kv.keys import DESCRIPTORS, NAMES, SCHEMA_MAPS, SETTINGS, Span
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode, Targets
from tests.unit.catalog.tables import users
from tests.unit.retention.protecting import OWNER, ProtectedStore

TABLE, OTHER_TABLE = 200, 300
MINUTES = 60
HOUR = 60 * MINUTES


@pytest.mark.parametrize("mode", Mode)
def test_a_protection_is_read_back_as_it_was_made(node: ProtectedStore, mode: Mode) -> None:
    at = node.create(TABLE)
    span = node.keyspace.index_span(TABLE)
    targets = Targets((TABLE, DEFAULT_SCHEMA, TABLE), (span,))
    id = node.transact(lambda txn: node.protections.protect(txn, at, mode, *OWNER, targets, expires_at=at))
    (found,) = node.state().records
    assert (found.id, found.at, found.mode, found.meta_type, found.meta) == (id, at, mode, *OWNER)
    assert (found.objects, found.spans, found.expires_at) == ((DEFAULT_SCHEMA, TABLE), (span,), at)


@pytest.mark.invariant("I31")
def test_the_meta_record_counts_what_there_is(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    head = node.head(TABLE)
    spans = (Span(head + b"a", head + b"b"), Span(head + b"c", head + b"d"), Span(head + b"b", head + b"bb"))
    start = node.meta()
    first = node.protect(at, Mode.AFTER, TABLE, DEFAULT_SCHEMA)
    second = node.transact(lambda txn: node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((), spans)))
    meta = node.meta()
    assert (meta.version, meta.records, meta.spans, meta.objects) == (start.version + 2, 2, 2, 2)
    node.transact(lambda txn: node.protections.move_forward(txn, first, txn.read_at))
    node.transact(lambda txn: node.protections.hand_over(txn, first, "schedule", b"a longer owner"))
    longer = node.meta()
    assert (longer.version, longer.records) == (start.version + 4, 2)
    assert longer.bytes > meta.bytes > 0
    node.release(first)
    node.release(second)
    assert node.meta() == ProtectionMeta(start.version + 6)


def test_several_mutations_of_one_transaction_all_count(node: ProtectedStore) -> None:
    at = node.create(TABLE)

    def run(txn: Transaction) -> None:
        ids = [node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((TABLE,))) for _ in range(3)]
        node.protections.release(txn, ids[1])

    node.transact(run)
    assert (node.meta().version, node.meta().records, len(node.state().records)) == (4, 2, 2)


def test_a_release_of_what_is_not_there_leaves_the_transaction_usable(node: ProtectedStore) -> None:
    at = node.create(TABLE)

    def run(txn: Transaction) -> None:
        with pytest.raises(ProtectionNotFound, match='protection "00000000-0000-0000-0000-000000000000"'):
            node.protections.release(txn, bytes(16))
        node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((TABLE,)))

    node.transact(run)
    assert (node.meta().version, node.meta().records) == (1, 1)


def test_an_expired_ttl_refuses_though_nothing_was_removed(node: ProtectedStore) -> None:
    node.set_ttl(HOUR)
    at = node.create(TABLE)
    node.env.advance(59 * MINUTES)
    node.protect(at, Mode.AT, TABLE)
    node.env.advance(2 * MINUTES)
    with pytest.raises(SnapshotTooOld, match="its ttl ended"):
        node.protect(at, Mode.AT, TABLE)
    assert node.meta().records == 1


@pytest.mark.invariant("I28")
def test_a_protect_that_is_slow_to_commit_does_not_commit(node: ProtectedStore) -> None:
    node.set_ttl(HOUR)
    at = node.create(TABLE)
    txn = node.store.begin()
    node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((TABLE,)))
    assert txn.deadline_at == add_seconds(at, HOUR)
    node.env.advance(61 * MINUTES)
    with pytest.raises(DeadlinePassed):
        txn.commit()
    assert node.meta().records == 0


def test_an_earlier_deadline_of_the_transaction_stays(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    txn = node.store.begin()
    txn.deadline_at = earlier_at = add_seconds(at, 5)
    node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((TABLE,)))
    assert txn.deadline_at == earlier_at


@pytest.mark.invariant("I28")
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("target", [TABLE, DEFAULT_SCHEMA, DEFAULT_DATABASE])
def test_a_raised_ttl_does_not_bring_back_what_a_sweep_has_passed(
    node: ProtectedStore, mode: Mode, target: int
) -> None:
    node.set_ttl(1)
    at = node.create(TABLE)
    node.env.advance(10)
    node.create(OTHER_TABLE)
    node.raise_threshold(node.head(TABLE, 2), at + 1)
    node.set_ttl(HOUR)
    with pytest.raises(SnapshotTooOld, match=r'"t200" cannot be protected.*is gone'):
        node.protect(at, mode, target)
    assert node.meta().records == 0
    node.protect(at + 1, mode, target)


def test_a_threshold_of_an_index_that_came_later_refuses_nothing(node: ProtectedStore) -> None:
    """An index that a merge filled has its publication as threshold."""
    at = node.create(TABLE)
    came_at = node.create(OTHER_TABLE)
    node.raise_threshold(node.head(OTHER_TABLE), came_at)
    for mode in Mode:
        node.protect(at, mode, DEFAULT_DATABASE)
    node.env.advance(1)
    node.create(201)
    node.raise_threshold(node.head(OTHER_TABLE), came_at + 1)
    node.protect(at, Mode.AT, DEFAULT_DATABASE)
    with pytest.raises(SnapshotTooOld, match="t300"):
        node.protect(at, Mode.AFTER, DEFAULT_DATABASE)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("table", [DESCRIPTORS, NAMES, SCHEMA_MAPS])
def test_the_catalog_must_be_readable_too(node: ProtectedStore, mode: Mode, table: int) -> None:
    at = node.create(TABLE)
    node.create(OTHER_TABLE)
    node.raise_threshold(node.keyspace.head(table), at + 1)
    with pytest.raises(SnapshotTooOld):
        node.protect(at, mode, TABLE)
    assert node.meta().records == 0


def test_a_table_that_was_moved_or_dropped_is_protected_where_it_was(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    node.alter(TABLE, schema=150)
    gone_at = node.alter(TABLE, state=DescriptorState.DROPPED)
    node.raise_threshold(node.head(TABLE), gone_at)
    for mode in Mode:
        with pytest.raises(SnapshotTooOld, match="t200"):
            node.protect(at, mode, DEFAULT_SCHEMA)
    node.protect(gone_at, Mode.AT, DEFAULT_SCHEMA)


# ── zones ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("zone", "mode", "is_touched"),
    [
        ((0, 0), Mode.AT, True),
        ((DEFAULT_DATABASE, 0), Mode.AT, True),
        ((DEFAULT_SCHEMA, 0), Mode.AT, True),
        ((TABLE, 0), Mode.AT, True),
        ((TABLE, 2), Mode.AT, True),
        ((TABLE, 9), Mode.AT, False),
        ((TABLE, 9), Mode.AFTER, True),
        ((OTHER_TABLE, 0), Mode.AT, False),
        ((150, 0), Mode.AT, False),
    ],
)
def test_the_shortest_ttl_of_what_is_covered_is_the_deadline(
    node: ProtectedStore, zone: tuple[int, int], mode: Mode, is_touched: bool
) -> None:
    at = node.create(TABLE)
    node.create(OTHER_TABLE, schema=150)
    node.set_ttl(HOUR)
    node.set_ttl(MINUTES, *zone)
    for target in (TABLE, DEFAULT_SCHEMA):
        txn = node.store.begin()
        node.protections.protect(txn, at, mode, *OWNER, Targets((target,)))
        assert txn.deadline_at == add_seconds(at, MINUTES if is_touched else HOUR)
        txn.rollback()


def test_all_zones_under_a_database_count(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    node.create(OTHER_TABLE)
    for ttl_seconds, table in ((HOUR, TABLE), (MINUTES, OTHER_TABLE)):
        node.set_ttl(ttl_seconds, table)
    deadlines = []
    for mode in Mode:
        txn = node.store.begin()
        node.protections.protect(txn, at, mode, *OWNER, Targets((DEFAULT_DATABASE,)))
        deadlines.append(txn.deadline_at)
        txn.rollback()
    # At `at` there was one table only; after it the other one has come.
    assert deadlines == [add_seconds(at, HOUR), add_seconds(at, MINUTES)]


@pytest.mark.invariant("I31")
@pytest.mark.parametrize("zone", [(0, 0), (TABLE, 0), (TABLE, 7)])
def test_a_zone_that_changes_meanwhile_conflicts(node: ProtectedStore, zone: tuple[int, int]) -> None:
    at = node.create(TABLE)
    txn = node.store.begin()
    node.protections.protect(txn, at, Mode.AFTER, *OWNER, Targets((DEFAULT_SCHEMA,)))
    node.set_ttl(1, *zone)
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.invariant("I28")
@pytest.mark.parametrize("mode", Mode)
def test_a_table_that_comes_or_moves_meanwhile_conflicts(node: ProtectedStore, mode: Mode) -> None:
    """It would be covered from its coming, with a ttl that was not looked at."""
    at = node.create(TABLE)
    node.create(OTHER_TABLE, schema=150)
    for id, schema in ((OTHER_TABLE, DEFAULT_SCHEMA), (TABLE, 150)):
        node.env.advance(20)
        txn = node.store.begin()
        node.protections.protect(txn, at, mode, *OWNER, Targets((DEFAULT_SCHEMA,)))
        node.alter(id, schema=schema)
        with pytest.raises(RetryError):
            txn.commit()


def test_a_table_s_protection_does_not_conflict_with_changes_of_others(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    txn = node.store.begin()
    node.protections.protect(
        txn, at, Mode.AFTER, *OWNER, Targets((TABLE,), (node.keyspace.table_span(TABLE),))
    )
    node.create(OTHER_TABLE)
    txn.commit()
    assert node.meta().records == 1


# ── spans ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", Mode)
def test_a_span_asks_the_indexes_that_it_touches(node: ProtectedStore, mode: Mode) -> None:
    at = node.create(TABLE)
    node.create(OTHER_TABLE)
    first, second = node.head(TABLE, 1), node.head(TABLE, 2)

    def protect(span: Span) -> None:
        node.transact(lambda txn: node.protections.protect(txn, at, mode, *OWNER, Targets((), (span,))))

    node.raise_threshold(second, at + 1)
    protect(Span(first + b"a", first + b"b"))
    for span in (
        Span(second + b"a", second + b"b"),
        Span(first + b"a", second + b"b"),
        node.keyspace.table_span(TABLE),
        node.keyspace.all(),
    ):
        with pytest.raises(SnapshotTooOld, match="t200"):
            protect(span)


@pytest.mark.parametrize(("ttl_seconds", "table"), [(MINUTES, TABLE), (HOUR, OTHER_TABLE)])
def test_a_span_has_the_ttl_of_its_index(node: ProtectedStore, ttl_seconds: int, table: int) -> None:
    at = node.create(TABLE)
    node.create(OTHER_TABLE)
    node.set_ttl(HOUR)
    node.set_ttl(MINUTES, TABLE, 1)
    txn = node.store.begin()
    span = node.keyspace.index_span(table)
    node.protections.protect(txn, at, Mode.AFTER, *OWNER, Targets((), (span,)))
    assert txn.deadline_at == add_seconds(at, ttl_seconds)


def test_a_span_of_the_system_has_the_default_ttl(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    node.set_ttl(HOUR)
    txn = node.store.begin()
    span = node.keyspace.index_span(SETTINGS)
    node.protections.protect(txn, at, Mode.AFTER, *OWNER, Targets((), (span,)))
    assert txn.deadline_at == add_seconds(at, HOUR)


# ── what is refused ────────────────────────────────────────────────────────────────────────────


@pytest.mark.setting("kv.protected_timestamp.max_records")
def test_too_many_records_are_refused_and_the_transaction_is_usable(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    node.settings = node.settings.with_value(PROTECTED_RECORDS_MAX, 2)
    for _ in range(2):
        node.protect(at, Mode.AT, TABLE)

    def run(txn: Transaction) -> None:
        with pytest.raises(TooManyProtections, match="there would be 3 protections, and 2 are") as raised:
            node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((TABLE,)))
        assert raised.value.sqlstate == "53400"
        node.catalog.put(txn, users(id=201))

    node.transact(run)
    assert node.catalog.get(node.store.snapshot(), 201) is not None
    assert (node.meta().version, node.meta().records) == (2, 2)


@pytest.mark.setting("kv.protected_timestamp.max_spans")
def test_spans_and_objects_are_limited_together(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    node.settings = node.settings.with_value(PROTECTED_SPANS_MAX, 3)
    node.protect(at, Mode.AT, TABLE, DEFAULT_SCHEMA)
    spans = tuple(node.keyspace.index_span(TABLE, each) for each in (1, 3))
    with pytest.raises(TooManyProtections, match="there would be 4 targets"):
        node.transact(lambda txn: node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((), spans)))
    node.transact(lambda txn: node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((), spans[:1])))
    assert (node.meta().spans, node.meta().objects) == (1, 2)


def test_a_refused_protect_sets_no_deadline(node: ProtectedStore) -> None:
    node.set_ttl(1)
    at = node.create(TABLE)
    node.env.advance(5)
    txn = node.store.begin()
    with pytest.raises(SnapshotTooOld):
        node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((TABLE,)))
    assert txn.deadline_at is None
    assert not txn.has_writes


def test_targets_must_exist_and_have_history(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    ids = (DEFAULT_DATABASE, DEFAULT_SCHEMA, TypeRef("int8"), 1, 1, 1, 9)
    node.publish(Sequence(210, 1, 0, "s", ROOT, DescriptorState.PUBLIC, (), (), *ids))
    with pytest.raises(UndefinedObject, match="id 999"):
        node.protect(at, Mode.AT, 999)
    with pytest.raises(UndefinedObject, match=f"id {TABLE}"):
        node.protect(at - 1, Mode.AT, TABLE)
    with pytest.raises(WrongObjectType, match='"s"'):
        node.protect(node.now(), Mode.AT, 210)
    with pytest.raises(InvalidParameter, match="target"):
        node.protect(at, Mode.AT)
    with pytest.raises(InvalidParameter):
        node.protect(add_seconds(at, 3600), Mode.AT, TABLE)


def test_a_rolled_back_savepoint_takes_the_protection_and_its_count_back(node: ProtectedStore) -> None:
    at = node.create(TABLE)

    def run(txn: Transaction) -> None:
        node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((TABLE,)))
        savepoint = txn.mark()
        node.protections.protect(txn, at, Mode.AFTER, *OWNER, Targets((TABLE,)))
        txn.back_to(savepoint)

    node.transact(run)
    assert [each.mode for each in node.state().records] == [Mode.AT]
    assert (node.meta().version, node.meta().records) == (1, 1)


def test_no_role_takes_all_protections(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    node.settings = node.settings.with_value(PROTECTED_RECORDS_MAX, 16)

    def taken(txn: Transaction, role: str) -> bool:
        try:
            node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((TABLE,)), role=role)
        except TooManyProtections:
            return False
        return True

    def counted(role: str) -> int:
        return sum(node.transact(lambda txn: taken(txn, role)) for _ in range(16))

    assert [counted(role) for role in ("ann", "bob", "eve")] == [8, 4, 2]
    assert counted("") == 2  # the system is not bound


# ── moving ─────────────────────────────────────────────────────────────────────────────────────


def test_a_protection_of_everything_after_a_time_moves_forward_only(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    later_at = node.create(OTHER_TABLE)
    id = node.protect(at, Mode.AFTER, TABLE)
    node.transact(lambda txn: node.protections.move_forward(txn, id, later_at))
    assert node.state().records[0].at == later_at
    for wrong_at in (at, add_seconds(later_at, 60)):
        with pytest.raises(InvalidParameter, match="cannot move"):
            node.transact(lambda txn, at=wrong_at: node.protections.move_forward(txn, id, at))  # type: ignore[misc]
    version = node.meta().version
    node.transact(lambda txn: node.protections.move_forward(txn, id, later_at))
    assert node.meta().version == version


def test_the_expiry_of_a_protection_moves_with_its_time(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    later_at = node.create(OTHER_TABLE)
    targets, expires_at = Targets((TABLE,)), add_seconds(at, 60)
    id = node.transact(
        lambda txn: node.protections.protect(txn, at, Mode.AFTER, *OWNER, targets, expires_at=expires_at)
    )
    node.transact(lambda txn: node.protections.move_forward(txn, id, later_at))
    assert node.state().records[0].expires_at == add_seconds(later_at, 60)
    assert node.meta().bytes == sum(
        len(node.protections._records.encode(each)) for each in node.state().records
    )


def test_a_protection_of_one_time_does_not_move(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    id = node.protect(at, Mode.AT, TABLE)
    with pytest.raises(WrongState):
        node.transact(lambda txn: node.protections.move_forward(txn, id, at))


def test_handing_over_changes_the_owner_and_not_the_time(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    id = node.protect(at, Mode.AT, TABLE)
    node.transact(lambda txn: node.protections.hand_over(txn, id, "schedule", b"9"))
    (found,) = node.state().records
    assert (found.at, found.meta_type, found.meta) == (at, "schedule", b"9")


# ── reads in its name ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", [TABLE, DEFAULT_SCHEMA])
def test_a_read_in_its_name_passes_below_the_threshold(node: ProtectedStore, target: int) -> None:
    node.create(TABLE)
    key, other = node.head(TABLE) + b"k", node.head(OTHER_TABLE) + b"k"
    txn = node.store.begin()
    txn.put(key, b"old")
    at = txn.commit()
    id = node.protect(at, Mode.AT, target)
    (protection,) = node.state().records
    later_at = node.create(OTHER_TABLE)
    for head in (node.head(TABLE), node.head(OTHER_TABLE)):
        node.raise_threshold(head, later_at)
    with pytest.raises(SnapshotTooOld):
        node.store.snapshot(at).get(key)
    snapshot = node.store.snapshot(at, node.protections.protected_read(protection))
    assert snapshot.get(key) == b"old"
    with pytest.raises(SnapshotTooOld):
        snapshot.get(other)
    node.release(id)
    with pytest.raises(SnapshotTooOld):
        node.store.snapshot(at, node.protections.protected_read(protection)).get(key)


def test_a_span_lets_reads_of_its_index_pass(node: ProtectedStore) -> None:
    at = node.create(TABLE)
    head = node.head(TABLE, 2)
    span = Span(head + b"a", head + b"b")
    node.transact(lambda txn: node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((), (span,))))
    (protection,) = node.state().records
    read = node.protections.protected_read(protection)
    assert read.covers(head)
    assert not read.covers(node.head(TABLE, 1))
    assert not read.covers(node.keyspace.head(SETTINGS))
