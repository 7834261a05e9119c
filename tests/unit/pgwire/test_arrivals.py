"""Which connection makes room when too many are logging in; and how wrong cancel keys are slowed down."""

import pytest

from tenure.pgwire.connection_slots import ConnectionSlots
from tenure.pgwire.guesses import BURST, ENTRIES_MAX, RATE, Guesses
from tenure.pgwire.login.arrivals import Arrivals
from tenure.pgwire.login.startup import Progress, Service
from tenure.pgwire.waits import Delay
from tests.unit.pgwire.toy import LetIn, Toys
from tests.unit.pgwire.wire import VERSION_3_2, Talk, cancel_request, query, startup

HERE, THERE = "10.0.0.1", "10.0.0.2"


@pytest.mark.invariant("proceeding-stay")
def test_who_is_silent_makes_room_before_who_proceeds() -> None:
    arrivals: Arrivals[str] = Arrivals()
    arrivals.move("proved", HERE, Progress.SILENT, "")
    arrivals.move("proved", HERE, Progress.PROVED, "anna")
    arrivals.move("named", HERE, Progress.NAMED, "anna")
    arrivals.move("silent", HERE, Progress.SILENT, "")
    arrivals.move("silent too", HERE, Progress.SILENT, "")
    arrivals.move("delayed", HERE, Progress.DELAYED, "bert")
    gone = []
    while len(arrivals):
        gone.append(arrivals.slowest())
        arrivals.remove(gone[-1])
    assert gone == ["delayed", "silent", "silent too", "named", "proved"]


def test_who_has_just_arrived_does_not_make_room_for_a_flood_that_stops_half_way() -> None:
    arrivals: Arrivals[str] = Arrivals()
    for number in range(20):
        arrivals.move(f"mallory {number}", HERE, Progress.NAMED, "mallory")
    arrivals.move("just arrived", HERE, Progress.SILENT, "")
    assert arrivals.slowest() == "mallory 0"
    for number in range(3):
        arrivals.move(f"silent {number}", HERE, Progress.SILENT, "")
    assert arrivals.slowest() == "just arrived"


def test_the_fullest_network_makes_room_first() -> None:
    arrivals: Arrivals[str] = Arrivals()
    arrivals.move("alone", THERE, Progress.SILENT, "")
    for number in range(3):
        arrivals.move(f"one of many {number}", HERE, Progress.PROVED, "anna")
    assert arrivals.slowest() == "one of many 0"


def test_of_those_who_came_as_far_the_user_with_the_most_makes_room() -> None:
    arrivals: Arrivals[str] = Arrivals()
    arrivals.move("root", HERE, Progress.NAMED, "root")
    for number in range(3):
        arrivals.move(f"mallory {number}", HERE, Progress.NAMED, "mallory")
    assert arrivals.slowest() == "mallory 0"


def test_a_network_of_version_6_is_what_one_machine_can_fill() -> None:
    arrivals: Arrivals[str] = Arrivals()
    for number in range(3):
        arrivals.move(f"same {number}", f"2001:db8::{number}", Progress.NAMED, "")
    arrivals.move("other", "2001:db8:1::1", Progress.SILENT, "")
    assert arrivals.slowest() == "same 0"


@pytest.mark.invariant("guesses-slowed")
def test_guesses_are_slowed_down_and_forgiven() -> None:
    guesses, looked_at, now = Guesses(), 0, 0.0
    while now < 10.0:
        now += guesses.wait_seconds(HERE, now)
        guesses.guessed(HERE, now)
        looked_at += 1
    assert BURST <= looked_at <= BURST + 10 * RATE + 1
    assert guesses.wait_seconds(THERE, now) == 0
    assert guesses.wait_seconds(HERE, now + BURST / RATE) == 0


def test_what_is_kept_of_guesses_is_bounded() -> None:
    guesses = Guesses()
    for number in range(ENTRIES_MAX + 10):
        guesses.guessed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", float(number))
    assert len(guesses) == ENTRIES_MAX


class Keys:
    """One session that waits, and requests to cancel it."""

    def __init__(self, version: int) -> None:
        self.service = Service(Toys(), LetIn(), ConnectionSlots(lambda: 1))
        self.client = Talk(service=self.service)
        self.client.say(startup(version))
        key = next(each for each in self.client.last if each.kind == "K").body
        self.pid, self.secret = int.from_bytes(key[:4], "big"), key[4:]

    def ask(self, secret: bytes, pid: int = 0) -> object:
        """What such a request waits for."""
        asking = Talk(service=self.service)
        asking.connection.receive(cancel_request(pid or self.pid, secret))
        return asking.connection.wait


def test_wrong_keys_are_soon_looked_at_one_after_the_other() -> None:
    keys = Keys(3 << 16)
    assert [keys.ask(b"1234") for _ in range(BURST)] == [None] * BURST
    assert isinstance(keys.ask(b"1234"), Delay)
    assert isinstance(keys.ask(keys.secret), Delay)


def test_right_keys_cost_nothing() -> None:
    keys = Keys(3 << 16)
    assert [keys.ask(keys.secret) for _ in range(2 * BURST)] == [None] * 2 * BURST


def test_long_keys_are_never_slowed_down() -> None:
    keys = Keys(VERSION_3_2)
    for _ in range(2 * BURST):
        keys.ask(b"1234")
    assert keys.ask(keys.secret) is None


def test_requests_for_other_processes_are_slowed_down() -> None:
    keys = Keys(VERSION_3_2)
    for _ in range(BURST):
        keys.ask(b"x" * 32, pid=7 << 16)
    assert isinstance(keys.ask(b"x" * 32, pid=7 << 16), Delay)
    assert keys.client.say(query("select 1")).endswith("Z:I")
