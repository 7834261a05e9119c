"""Group commit: who goes with whom, and that everybody gets the true outcome."""

import threading
from collections.abc import Callable, Iterator

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import (
    Disconnected,
    DiskFull,
    OutcomeUnknown,
    RetryError,
    SessionLost,
    Unavailable,
    UserError,
)
from tenure.base.timestamp import add_seconds
from tenure.kv.commit_groups import GROUP_BYTES_MAX, GROUP_MAX, GROUP_ROWS_MAX
from tenure.kv.commits import SETTLE_PAUSES
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Group, Outcome
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.breaking import BreakingEngine, Deliver, cut_after_landing, cut_before_landing
from tests.unit.kv.rows import TABLE, named, row, write
from tests.unit.kv.waiting import PATIENCE_SECONDS, Call, SeenWaits


class Line:
    """A store whose first group is held up, so that the commits of other threads stand in line."""

    def __init__(self) -> None:
        self.env = SeenWaits()
        self.engine = BreakingEngine(SqliteEngine(MEMORY, self.env))
        self.store = Store(self.engine, self.env)
        self.gate = threading.Event()
        self.later: Callable[[Group, Deliver], list[Outcome]] = lambda group, deliver: deliver(group)
        self._held = threading.Event()
        self.engine.on_commit = self._hold_the_first
        self.first = Call(lambda: write(self.store, first=b"1"))
        assert self._held.wait(PATIENCE_SECONDS)

    def _hold_the_first(self, group: Group, deliver: Deliver) -> list[Outcome]:
        if len(self.engine.groups) == 1:
            self._held.set()
            assert self.gate.wait(PATIENCE_SECONDS)
        return self.later(group, deliver)

    def queue(self, *txns: Transaction) -> list[Call]:
        """Commits each transaction in a thread of its own, one behind the other."""
        calls = []
        for txn in txns:
            calls.append(Call(txn.commit))
            self.env.await_waits(1)
        return calls

    def writing(self, name: str, *, reading: str | None = None) -> Transaction:
        txn = self.store.begin()
        if reading is not None:
            txn.get(row(reading))
        txn.put(row(name), b"1")
        return txn


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line()
    yield line
    line.gate.set()
    line.engine.close()


def sizes(line: Line) -> list[int]:
    return [len(group.members) for group in line.engine.groups]


def test_commits_that_come_during_another_share_one_engine_call(line: Line) -> None:
    calls = line.queue(*(line.writing(name) for name in "abcde"))
    line.gate.set()
    for call in calls:
        call.result()
    assert sizes(line) == [1, 5]


def test_members_of_a_group_each_have_a_timestamp_in_the_order_they_came(line: Line) -> None:
    calls = line.queue(*(line.writing(name) for name in "abcde"))
    line.gate.set()
    ats = [line.first.result(), *(call.result() for call in calls)]
    assert ats == sorted(set(ats))


def test_a_group_has_a_greatest_size(line: Line) -> None:
    calls = line.queue(*(line.writing(f"{number}") for number in range(GROUP_MAX + 1)))
    line.gate.set()
    for call in calls:
        call.result()
    assert sizes(line) == [1, GROUP_MAX, 1]


def test_commits_with_many_bytes_do_not_share_a_group(line: Line) -> None:
    """A heartbeat enters the section between two groups."""
    large = [line.store.begin() for _ in range(3)]
    for number, txn in enumerate(large):
        txn.put(row(f"large {number}"), bytes(GROUP_BYTES_MAX // 2 + 1))
    calls = line.queue(line.writing("a"), *large, line.writing("b"))
    line.gate.set()
    for call in calls:
        call.result()
    assert sizes(line) == [1, 2, 1, 2]


def test_commits_with_many_rows_do_not_share_a_group(line: Line) -> None:
    txn = line.store.begin()
    for number in range(GROUP_ROWS_MAX):
        txn.put(row(f"row {number}"), b"")
    calls = line.queue(line.writing("a"), txn, line.writing("b"))
    line.gate.set()
    for call in calls:
        call.result()
    assert sizes(line) == [1, 1, 1, 1]


@pytest.mark.invariant("I2")
def test_a_member_that_fails_does_not_fail_the_rest(line: Line) -> None:
    fine, doomed, also_fine = (
        line.writing("a"),
        line.writing("b", reading="a"),
        line.writing("c", reading="b"),
    )
    calls = line.queue(fine, doomed, also_fine)
    line.gate.set()
    calls[0].result()
    assert isinstance(calls[1].error(), RetryError)
    calls[2].result()
    assert [name for name, _ in named(line.store.begin().scan(TABLE))] == ["a", "c", "first"]


def test_an_error_of_the_whole_group_is_a_copy_for_each_member(line: Line) -> None:
    def refuse(group: Group, deliver: Deliver) -> list[Outcome]:
        raise DiskFull("no space", hint="Free some.")

    line.later = refuse
    calls = line.queue(line.writing("a"), line.writing("b"))
    line.gate.set()
    errors = [line.first.error(), *(call.error() for call in calls)]
    assert len({id(error) for error in errors}) == 3
    for error in errors:
        assert isinstance(error, DiskFull)
        assert (str(error), error.hint) == ("no space", "Free some.")
        assert isinstance(error.__cause__, DiskFull)


@pytest.mark.invariant("I5")
def test_an_interrupted_leader_leaves_its_followers_in_doubt_and_the_line_moving(line: Line) -> None:
    def interrupt_the_second(group: Group, deliver: Deliver) -> list[Outcome]:
        if len(line.engine.groups) == 2:
            raise KeyboardInterrupt
        return deliver(group)

    line.later = interrupt_the_second
    leader, follower = line.queue(line.writing("a"), line.writing("b"))
    line.gate.set()
    assert isinstance(leader.error(), KeyboardInterrupt)
    assert isinstance(follower.error(), OutcomeUnknown)
    Call(lambda: write(line.store, c=b"1")).result()


def test_an_interrupted_waiter_does_not_stop_the_line(line: Line) -> None:
    line.env.interrupts_next_wait = True
    interrupted = line.queue(line.writing("a"))[0]
    assert isinstance(interrupted.error(), KeyboardInterrupt)
    line.gate.set()
    line.first.result()
    Call(lambda: write(line.store, c=b"1")).result(timeout=1.0)


def test_an_urgent_commit_overtakes_those_under_way(line: Line) -> None:
    def heartbeat(txn: Transaction) -> None:
        txn.put(row("heartbeat"), b"1")

    line.queue(line.writing("a"))
    line.store.transact(heartbeat, urgent=True)
    assert line.store.begin().get(row("heartbeat")) == b"1"
    assert line.store.begin().get(row("first")) is None


def test_urgent_and_ordinary_commits_go_on_lanes_of_their_own(line: Line) -> None:
    line.gate.set()
    line.first.result()
    line.store.transact(lambda txn: txn.put(row("a"), b"1"), urgent=True)
    assert len({group.lane for group in line.engine.groups}) == 2


@pytest.mark.invariant("I5")
def test_a_commit_cut_off_before_it_landed_is_retryable(store: Store, engine: BreakingEngine) -> None:
    engine.on_commit = cut_before_landing
    with pytest.raises(RetryError):
        write(store, a=b"1")
    assert store.begin().get(row("a")) is None


@pytest.mark.invariant("I5")
def test_a_commit_cut_off_after_it_landed_is_found(store: Store, engine: BreakingEngine) -> None:
    engine.on_commit = cut_after_landing
    at = write(store, a=b"1")
    assert at == engine.clock_at()
    assert store.begin().get(row("a")) == b"1"


@pytest.mark.invariant("I5")
def test_a_commit_given_up_cannot_land_later(store: Store, engine: BreakingEngine) -> None:
    engine.on_commit = cut_before_landing
    with pytest.raises(RetryError):
        write(store, a=b"1")
    with pytest.raises(RetryError):
        engine.engine.commit(engine.groups[-1])
    assert store.begin().get(row("a")) is None


@pytest.mark.invariant("I5")
def test_a_refusal_cut_off_on_its_way_back_is_retryable(store: Store, engine: BreakingEngine) -> None:
    txn = store.begin()
    txn.get(row("a"))
    txn.put(row("b"), b"1")
    write(store, a=b"1")
    engine.on_commit = cut_after_landing
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.invariant("I5")
def test_settling_is_repeated_while_the_store_is_away(
    store: Store, engine: BreakingEngine, env: ManualEnv
) -> None:
    engine.on_commit = cut_after_landing
    engine.settle_errors = [Unavailable("restarting"), Disconnected("cut again"), *[Unavailable("")] * 18]
    write(store, a=b"1")
    assert engine.settled == [1] * 21
    assert 5 < env.monotonic() < 20, "pauses grow, up to a second"


@pytest.mark.invariant("I5")
def test_a_node_that_stops_while_the_store_is_away_says_it_does_not_know(
    env: ManualEnv, engine: BreakingEngine
) -> None:
    class Stopping(BreakingEngine):
        def settle(self, lane: bytes, seq: int) -> list[Outcome] | None:
            store.close()
            raise Unavailable("away")

    stopping = Stopping(engine.engine)
    store = Store(stopping, env)
    stopping.on_commit = cut_after_landing
    with pytest.raises(OutcomeUnknown) as caught:
        write(store, a=b"1")
    assert caught.value.sqlstate == "40003"


@pytest.mark.invariant("I5")
def test_an_owner_whose_lane_is_gone_does_not_know(store: Store, engine: BreakingEngine) -> None:
    def declared_dead(group: Group, deliver: Deliver) -> list[Outcome]:
        deliver(group)
        engine.close_lane(group.lane)
        raise Disconnected("cut")

    engine.on_commit = declared_dead
    with pytest.raises(OutcomeUnknown):
        write(store, a=b"1")


def test_nothing_lands_on_a_lane_that_is_closed(store: Store, engine: BreakingEngine) -> None:
    store.close()
    with pytest.raises(SessionLost):
        write(store, a=b"1")
    assert engine.get(row("a"), store.keyspace.point_guard(row("a"))).revisions == []


def test_a_node_declared_dead_goes_on_with_new_lanes(store: Store, engine: BreakingEngine) -> None:
    former = store.lanes()
    for lane in former:
        engine.close_lane(lane)
    with pytest.raises(SessionLost):
        write(store, a=b"1")
    store.renew_lanes()
    write(store, a=b"2")
    assert store.begin().get(row("a")) == b"2"
    assert store.lanes()[0] not in former


def test_an_error_that_changed_nothing_is_not_settled(store: Store, engine: BreakingEngine) -> None:
    def away(group: Group, deliver: Deliver) -> list[Outcome]:
        raise Unavailable("no connection")

    engine.on_commit = away
    with pytest.raises(Unavailable):
        write(store, a=b"1")
    assert engine.settled == []


def test_groups_are_numbered_upward_whatever_becomes_of_them(store: Store, engine: BreakingEngine) -> None:
    write(store, a=b"1")
    engine.on_commit = cut_before_landing
    with pytest.raises(RetryError):
        write(store, a=b"2")
    engine.on_commit = None
    write(store, a=b"3")
    assert [group.seq for group in engine.groups] == [1, 2, 3]


def test_on_the_ordinary_lane_an_outcome_is_waited_for_past_the_deadline(
    store: Store, engine: BreakingEngine, env: ManualEnv
) -> None:
    """A pin or claim ends only when the outcome is known."""
    engine.on_commit = cut_after_landing
    engine.settle_errors += [Unavailable("the store is away")] * 100
    txn = store.begin()
    txn.put(row("a"), b"1")
    txn.deadline_at = add_seconds(store.clock.now(), 1.0)
    txn.commit()
    assert store.begin().get(row("a")) == b"1"
    assert engine.settle_errors == []


def test_on_the_urgent_lane_an_outcome_is_waited_for_until_the_deadline(
    store: Store, engine: BreakingEngine, env: ManualEnv
) -> None:
    engine.on_commit = cut_after_landing
    engine.settle_errors += [Unavailable("the store is away")] * 100
    txn = store.begin(urgent=True)
    txn.put(row("a"), b"1")
    txn.deadline_at = add_seconds(store.clock.now(), 1.0)
    with pytest.raises(OutcomeUnknown):
        txn.commit()
    assert 1.0 <= env.monotonic() < 1.0 + SETTLE_PAUSES.seconds_max


class Canceled(UserError):
    pass


def _cancel() -> None:
    raise Canceled("it is not wanted any more")


def test_a_commit_that_waits_for_its_group_can_be_taken_back(line: Line) -> None:
    taken_back = Call(lambda: line.writing("a").commit(_cancel))
    with pytest.raises(Canceled):
        taken_back.result()
    (behind,) = line.queue(line.writing("b"))
    line.gate.set()
    behind.result()
    line.first.result()
    assert _names(line.store) == ["b", "first"]


def test_a_commit_that_is_to_lead_can_be_taken_back(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    with pytest.raises(Canceled):
        txn.commit(_cancel)
    write(store, b=b"1")
    assert _names(store) == ["b"]


@pytest.mark.invariant("I5")
def test_a_commit_that_is_wanted_back_after_it_was_sent_is_told_as_committed(line: Line) -> None:
    waits, is_sent, was_refused = threading.Event(), threading.Event(), threading.Event()

    def check() -> None:
        waits.set()
        if is_sent.is_set():
            was_refused.set()
            _cancel()

    def later(group: Group, deliver: Deliver) -> list[Outcome]:
        is_sent.set()
        assert was_refused.wait(PATIENCE_SECONDS)
        return deliver(group)

    line.later = lambda group, deliver: later(group, deliver) if len(group.members) > 1 else deliver(group)
    (leader,) = line.queue(line.writing("a"))
    late = Call(lambda: line.writing("b").commit(check))
    assert waits.wait(PATIENCE_SECONDS)
    line.gate.set()
    assert late.result() > leader.result()
    assert _names(line.store) == ["a", "b", "first"]


def _names(store: Store) -> list[object]:
    return [name for name, _ in named(store.snapshot().scan(TABLE))]


class TakenSection(BreakingEngine):
    """Another process has the section until `freed` is set."""

    def __init__(self, engine: SqliteEngine) -> None:
        super().__init__(engine)
        self.freed = threading.Event()

    def enter(self, lane: bytes, *, wait: bool) -> bool:
        return self.freed.wait(PATIENCE_SECONDS if wait else 0.0)


def test_a_leader_that_finds_the_section_taken_can_be_taken_back() -> None:
    env = SystemEnv()
    engine = TakenSection(SqliteEngine(MEMORY, env))
    store = Store(engine, env)
    waits = threading.Event()

    def check() -> None:
        if waits.is_set():
            _cancel()
        waits.set()

    taken_back, kept = store.begin(), store.begin()
    taken_back.put(row("a"), b"1")
    kept.put(row("b"), b"1")
    with pytest.raises(Canceled):
        taken_back.commit(check)
    assert not engine.groups, "nothing was sent"
    call = Call(kept.commit)
    engine.freed.set()
    call.result()
    assert _names(store) == ["b"]
    assert [len(group.members) for group in engine.groups] == [1]
    store.close()


def test_a_submitted_commit_can_be_taken_back_until_it_is_sent() -> None:
    env = SystemEnv()
    engine = TakenSection(SqliteEngine(MEMORY, env))
    store = Store(engine, env)
    done = threading.Event()
    txn, other = store.begin(), store.begin()
    txn.put(row("a"), b"1")
    other.put(row("b"), b"1")
    txn.submit(done.set)
    assert txn.take_back(Canceled("it is not wanted any more"))
    assert done.is_set()
    with pytest.raises(Canceled):
        txn.finish()
    engine.freed.set()
    decided = threading.Event()
    other.submit(decided.set)
    assert decided.wait(PATIENCE_SECONDS)
    assert not other.take_back(Canceled("too late"))
    other.finish()
    assert _names(store) == ["b"]
    store.close()
