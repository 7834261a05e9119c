"""The engine contract: one store used by many threads and by several processes."""

import threading
from collections.abc import Callable

import pytest

from tenure.base.timestamp import Timestamp, from_micros
from tenure.storage.engine import Commit, CommitStatus, Engine, Outcome, Write
from tests.contract.engine_client import GUARD, Client, key, write

WAKE_SECONDS = 20.0
INCREMENTS = 25
THREADS = 6


def test_subscribers_are_woken_by_a_commit(client: Client) -> None:
    woken = threading.Event()
    stop = client.engine.subscribe(woken.set)
    _commit_until(client, woken)
    stop()


def test_a_subscriber_that_stopped_is_not_called(client: Client) -> None:
    woken, other = threading.Event(), threading.Event()
    client.engine.subscribe(woken.set)
    stop = client.engine.subscribe(other.set)
    _commit_until(client, other)
    stop()
    stop()
    other.clear()
    woken.clear()
    _commit_until(client, woken)
    assert not other.is_set()


def test_subscribers_are_woken_by_another_process(open_engine: Callable[[], Engine]) -> None:
    woken = threading.Event()
    open_engine().subscribe(woken.set)
    _commit_until(Client(open_engine()), woken)


@pytest.mark.invariant("signal-misses-none")
def test_a_subscriber_of_a_span_is_woken_by_commits_that_write_there(client: Client) -> None:
    woken = threading.Event()
    stop = client.engine.subscribe(woken.set, [(b"\0", b"\1"), (key("a"), key("b"))])
    _commit_until(client, woken)
    stop()


def test_a_subscriber_of_a_span_is_woken_by_another_process(open_engine: Callable[[], Engine]) -> None:
    woken = threading.Event()
    open_engine().subscribe(woken.set, [(key("a"), key("b"))])
    _commit_until(Client(open_engine()), woken)


def test_a_subscriber_of_another_span_is_left_alone(client: Client) -> None:
    woken, other = threading.Event(), threading.Event()
    client.engine.subscribe(other.set, [(b"\xff", b"\xff\xff")])
    client.engine.subscribe(woken.set)

    def leaves_alone() -> bool:
        other.clear()
        woken.clear()
        _commit_until(client, woken)
        return not other.is_set()

    # A hint may come for nothing, as when somebody begins to listen, but not each time.
    assert any(leaves_alone() for _ in range(20))


def _commit_until(client: Client, woken: threading.Event) -> None:
    # A hint may be lost, but not every one of them.
    for _ in range(int(WAKE_SECONDS / 0.5)):
        client.put("a")
        if woken.wait(0.5):
            return
    raise AssertionError("no commit woke the subscriber")


def test_two_engines_on_one_store_see_each_other(open_engine: Callable[[], Engine]) -> None:
    one, two = Client(open_engine()), Client(open_engine())
    first_at = one.put("a", b"1")
    assert two.value("a") == b"1"
    assert two.put("a", b"2") == first_at + 1
    assert one.value("a") == b"2"
    assert one.try_one(Commit(first_at, points=(key("a"),))).status is CommitStatus.CONFLICT


def test_a_store_keeps_what_was_committed(open_engine: Callable[[], Engine]) -> None:
    first = Client(open_engine())
    at = first.put("a", b"1")
    assert Client(open_engine()).value("a", at) == b"1"
    assert open_engine().settle(first.lane, first.seq) == [Outcome(CommitStatus.COMMITTED, at, b"", 0)]


def test_any_engine_can_settle_or_close_a_lane(open_engine: Callable[[], Engine]) -> None:
    owner, other = Client(open_engine()), open_engine()
    late = owner.group(Commit(0, writes=(write("a"),)))
    assert other.settle(owner.lane, late.seq) is None
    other.close_lane(owner.lane)
    assert owner.get("a") is None


def test_threads_lose_no_increments(engine: Engine) -> None:
    _count_up([engine] * THREADS)


def test_engines_lose_no_increments(open_engine: Callable[[], Engine]) -> None:
    _count_up([open_engine(), open_engine(), open_engine()] * 2)


def _count_up(engines: list[Engine]) -> None:
    """Each thread increments one counter by read, validate, write; timestamps strictly increase."""
    Client(engines[0]).put("counter", b"0")
    commits: list[tuple[Timestamp, int]] = []
    failures: list[BaseException] = []

    def work(engine: Engine, urgent: bool) -> None:
        try:
            client = Client(engine, urgent=urgent)
            commits.extend(_increment(client) for _ in range(INCREMENTS))
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(engine, number == 0)) for number, engine in enumerate(engines)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [value for _, value in sorted(commits)] == list(range(1, INCREMENTS * len(engines) + 1))
    assert len({at for at, _ in commits}) == len(commits)


def _increment(client: Client) -> tuple[Timestamp, int]:
    while True:
        found = client.engine.get(key("counter"), GUARD)
        value = int(found.revisions[0].value or b"0") + 1
        commit = Commit(
            found.clock_at,
            points=(key("counter"),),
            guards=(GUARD,),
            writes=(Write(key("counter"), b"%d" % value),),
        )
        wall_at = from_micros(client.engine.wall_micros())
        (outcome,) = client.engine.commit(client.group(commit, wall_at=wall_at))
        if outcome.status is CommitStatus.COMMITTED:
            return outcome.at, value


def test_readers_see_whole_commits_while_others_write(engine: Engine) -> None:
    writer = Client(engine)
    writer.write(write("a", b"0"), write("b", b"0"))
    is_over = threading.Event()
    torn: list[object] = []

    def read() -> None:
        reader = Client(engine)
        while not is_over.is_set():
            a, b = reader.scan(key("a"), key("c")).revisions
            if (a.at, a.value) != (b.at, b.value):
                torn.append((a, b))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(100):
        writer.write(write("a", b"%d" % number), write("b", b"%d" % number))
    is_over.set()
    for thread in threads:
        thread.join()
    assert torn == []
