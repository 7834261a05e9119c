"""Who runs, who waits and who queues: users share the places, and waits take none."""

import random
import threading
from collections.abc import Callable, Iterator

import pytest

from tenure.base.env import SystemEnv
from tenure.pgwire.threads.places import Errand, Places, State
from tenure.pgwire.threads.thread_crew import Crew

SECONDS_MAX = 10


class Someone:
    """An errand that says when it has begun, and ends when it may."""

    def __init__(self, guests: "Guests", user: str, *, waits: bool, is_inside: bool) -> None:
        self._env = guests.env
        self._waits = waits
        self.has_begun, self.may_end, self.is_done = (threading.Event() for _ in range(3))
        self.error: BaseException | None = None
        self.errand = Errand(guests.places, self._run, self._done, user=user, is_inside=is_inside)

    def _run(self) -> None:
        if self._waits:
            # As where a wait for a lock asks a store that is far away.
            with self._env.waiting(), self._env.waiting(holds=True):
                self.has_begun.set()
                assert self.may_end.wait(SECONDS_MAX)
        else:
            self.has_begun.set()
            assert self.may_end.wait(SECONDS_MAX)

    def _done(self, value: object, error: BaseException | None) -> None:
        self.error = error
        self.is_done.set()

    def begins(self) -> bool:
        return self.has_begun.wait(SECONDS_MAX)

    def ends(self) -> bool:
        self.may_end.set()
        return self.is_done.wait(SECONDS_MAX) and self.error is None


class Guests:
    def __init__(self, places_max: int = 2, statements_max: int = 100) -> None:
        self.env = SystemEnv()
        self.crew = Crew("test", self.env)
        self.statements_max = statements_max
        self.places = Places(
            self.env, self.crew, places_max=places_max, statements_max=lambda: self.statements_max
        )
        self.all: list[Someone] = []

    def enter(self, user: str, *, waits: bool = False, is_inside: bool = False) -> Someone:
        someone = Someone(self, user, waits=waits, is_inside=is_inside)
        self.all.append(someone)
        self.places.enter(someone.errand)
        return someone

    def close(self) -> None:
        for each in self.all:
            each.may_end.set()
        self.crew.close(wait=True)


Begin = Callable[..., Guests]


@pytest.fixture
def begin() -> Iterator[Begin]:
    begun: list[Guests] = []

    def begin(*limits: int) -> Guests:
        begun.append(Guests(*limits))
        return begun[-1]

    yield begin
    for guests in begun:
        guests.close()


@pytest.mark.invariant("waits-hold-no-place")
def test_any_number_of_waits_leave_the_places_to_others(begin: Begin) -> None:
    guests = begin(2)
    waiting = [guests.enter("anna", waits=True) for _ in range(20)]
    assert all(each.begins() for each in waiting)
    assert guests.enter("anna").begins()
    assert guests.enter("bert").begins()


def test_no_more_run_than_there_are_places(begin: Begin) -> None:
    guests = begin(2)
    first, _, third = (guests.enter("anna") for _ in range(3))
    assert first.begins()
    assert third.errand.state is State.QUEUED
    assert first.ends()
    assert third.begins()
    assert guests.places.running == 2


@pytest.mark.invariant("users-in-turn")
def test_a_user_does_not_wait_for_the_statements_of_others(begin: Begin) -> None:
    guests = begin(2)
    running = [guests.enter("anna") for _ in range(10)]
    assert running[0].begins()
    assert guests.enter("bert").begins()
    second = guests.enter("bert")  # bert's share of two places is one
    assert second.errand.state is State.QUEUED
    assert guests.enter("carl").begins()


def test_a_place_that_is_free_goes_to_users_in_turn(begin: Begin) -> None:
    guests = begin(1)
    firsts = [guests.enter(user) for user in ("anna", "bert")]
    queued = {user: [guests.enter(user) for _ in range(3)] for user in ("anna", "bert")}
    assert all(each.ends() for each in firsts)
    for number in range(3):
        for user in ("anna", "bert"):
            assert queued[user][number].begins()
            assert queued[user][number].ends()


def test_one_that_has_waited_queues_for_a_place_before_those_who_begin(begin: Begin) -> None:
    guests = begin(1)
    waiting = guests.enter("anna", waits=True)
    assert waiting.begins()
    running, next_one = guests.enter("anna"), guests.enter("anna")
    assert running.begins()
    waiting.may_end.set()
    while waiting.errand.state is State.AWAY:
        threading.Event().wait(0.001)
    assert waiting.errand.state is State.RETURNING
    assert running.ends()
    assert waiting.ends()
    assert next_one.begins()


def test_a_user_has_no_more_under_way_than_the_cap_but_for_what_is_inside_a_transaction(begin: Begin) -> None:
    guests = begin(4, 2)
    waiting = [guests.enter("anna", waits=True) for _ in range(3)]
    assert waiting[1].begins()
    assert waiting[2].errand.state is State.QUEUED
    assert guests.enter("anna", is_inside=True, waits=True).begins()
    assert guests.enter("bert", waits=True).begins()
    assert waiting[0].ends()
    assert waiting[2].begins()


def test_what_is_withdrawn_before_it_begins_never_runs(begin: Begin) -> None:
    guests = begin(1)
    first, second, third = (guests.enter("anna") for _ in range(3))
    assert guests.places.withdraw(second.errand)
    assert first.begins()
    assert not guests.places.withdraw(first.errand)
    assert first.ends()
    assert third.begins()
    assert not second.has_begun.is_set()


def test_one_that_is_canceled_while_it_queues_to_come_back_does_so_at_once(begin: Begin) -> None:
    guests = begin(1)
    waiting = guests.enter("anna", waits=True)
    assert waiting.begins()
    assert guests.enter("anna").begins()
    waiting.may_end.set()
    while waiting.errand.state is not State.RETURNING:
        threading.Event().wait(0.001)
    assert not guests.places.withdraw(waiting.errand)
    assert waiting.is_done.wait(SECONDS_MAX)


@pytest.mark.parametrize("holds", [True, False])
def test_who_holds_something_or_fails_comes_back_at_once(begin: Begin, holds: bool) -> None:
    guests, may_end, done = begin(1), threading.Event(), threading.Event()
    found: list[BaseException | None] = []

    def wait() -> None:
        with guests.env.waiting(holds=holds):
            may_end.wait(SECONDS_MAX)
            if not holds:
                raise ZeroDivisionError

    def on_done(_: object, error: BaseException | None) -> None:
        found.append(error)
        done.set()

    guests.places.enter(Errand(guests.places, wait, on_done, user="anna", is_inside=False))
    assert guests.enter("anna").begins()
    may_end.set()
    assert done.wait(SECONDS_MAX)
    assert [type(each) for each in found] == [type(None) if holds else ZeroDivisionError]


def test_a_crowd_of_all_kinds_comes_through_and_leaves_nothing_behind(begin: Begin) -> None:
    guests, rng, users = begin(3, 10), random.Random(7), "abcde"

    def act() -> None:
        for _ in range(3):
            with guests.env.waiting(holds=rng.random() < 0.1):
                threading.Event().wait(rng.random() / 1000)

    left = threading.Semaphore(0)
    for _ in range(300):
        user, is_inside = rng.choice(users), rng.random() < 0.3
        done = lambda value, error: left.release()  # noqa: E731
        errand = Errand(guests.places, act, done, user=user, is_inside=is_inside)
        guests.places.enter(errand)
        if rng.random() < 0.2 and guests.places.withdraw(errand):
            left.release()
    assert all(left.acquire(timeout=SECONDS_MAX) for _ in range(300))
    assert guests.places.running == 0
    assert guests.enter("z").begins()


@pytest.mark.invariant("crew-shrinks")
def test_threads_that_nobody_needs_end() -> None:
    env, both = SystemEnv(), threading.Barrier(3)
    crew = Crew("test", env, idle_seconds=0.01)

    def meet() -> None:
        both.wait(SECONDS_MAX)

    for _ in range(2):
        crew.run(meet)
    both.wait(SECONDS_MAX)
    for _ in range(1000):
        if len(crew) == 0:
            break
        threading.Event().wait(0.01)
    assert len(crew) == 0
    done = threading.Event()
    crew.run(done.set)
    assert done.wait(SECONDS_MAX)
    crew.close(wait=True)


def test_a_thread_that_is_idle_is_used_again() -> None:
    crew, seen = Crew("test", SystemEnv()), list[int]()
    for number in range(20):
        crew.run(lambda: seen.append(threading.get_ident()))
        while len(seen) <= number or len(crew._idle) < len(crew):
            threading.Event().wait(0.001)
    assert len(set(seen)) == 1
    crew.close(wait=True)


def test_a_wait_within_a_wait_gives_up_one_place(begin: Begin) -> None:
    guests = begin(2)
    running, waiting = guests.enter("anna"), guests.enter("anna", waits=True)
    assert running.begins() and waiting.begins()
    assert guests.places.running == 1
    assert waiting.ends()
    assert guests.places.running == 1
    assert running.ends()
    assert guests.places.running == 0
