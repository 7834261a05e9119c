"""Guessing gets slow, for those who guess."""

import pytest

from tenure.pgwire.login.throttle import (
    ENTRIES_MAX,
    FIRST_WAIT_SECONDS,
    FORGET_SECONDS,
    FREE_FAILURES,
    USERS_PER_NETWORK_MAX,
    WAIT_SECONDS_MAX,
    Throttle,
    is_loopback,
    network_of,
)

HERE, THERE = "192.0.2.1", "198.51.100.7"


def _guess(
    throttle: Throttle, times: int, *, user: str = "ann", address: str = HERE, now: float = 0.0
) -> float:
    """Fails so often, each time as soon as it may; returns when it was done."""
    for _ in range(times):
        now += throttle.wait_seconds(user, address, now)
        throttle.failed(user, address, now)
    return now


def test_a_few_typing_errors_cost_nothing() -> None:
    throttle = Throttle()
    assert _guess(throttle, FREE_FAILURES) == 0
    assert throttle.wait_seconds("ann", HERE, 0) == 0


def test_each_further_failure_doubles_the_wait_up_to_a_limit() -> None:
    throttle, waits, now = Throttle(), [], _guess(Throttle(), FREE_FAILURES)
    _guess(throttle, FREE_FAILURES)
    for _ in range(12):
        throttle.failed("ann", HERE, now)
        waits.append(throttle.wait_seconds("ann", HERE, now))
        now += waits[-1]
    assert waits[:4] == [FIRST_WAIT_SECONDS * 2**n for n in range(4)]
    assert waits[-1] == WAIT_SECONDS_MAX


def test_a_hundred_guesses_take_the_better_part_of_an_hour() -> None:
    assert _guess(Throttle(), 100) > 2400


def test_many_connections_at_once_guess_no_faster_than_one() -> None:
    throttle, now, looked_at = Throttle(), 0.0, 0
    while now < 60:
        for _ in range(50):
            if throttle.wait_seconds("ann", HERE, now) == 0:
                throttle.failed("ann", HERE, now)
                looked_at += 1
        now += 0.25
    assert looked_at <= FREE_FAILURES + 10


def test_other_users_and_other_addresses_do_not_wait() -> None:
    throttle = Throttle()
    now = _guess(throttle, 10)
    assert throttle.wait_seconds("bob", HERE, now) == 0
    assert throttle.wait_seconds("ann", THERE, now) == 0
    assert throttle.wait_seconds("ann", HERE, now) > 0


def test_success_forgets() -> None:
    throttle = Throttle()
    now = _guess(throttle, 10)
    throttle.succeeded("ann", HERE)
    assert throttle.wait_seconds("ann", HERE, now) == 0
    assert len(throttle) == 0


def test_quiet_forgets() -> None:
    throttle = Throttle()
    now = _guess(throttle, 10) + FORGET_SECONDS + 1
    throttle.failed("ann", HERE, now)
    assert throttle.wait_seconds("ann", HERE, now) == 0


@pytest.mark.invariant("root-not-locked-out")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", ""])
def test_root_never_waits_on_this_machine(address: str) -> None:
    throttle = Throttle()
    for _ in range(100):
        throttle.failed("root", address, 0.0)
    assert throttle.wait_seconds("root", address, 0.0) == 0


def test_root_waits_elsewhere_and_others_wait_here() -> None:
    throttle = Throttle()
    for _ in range(10):
        throttle.failed("root", HERE, 0.0)
        throttle.failed("ann", "127.0.0.1", 0.0)
    assert throttle.wait_seconds("root", HERE, 0.0) > 0
    assert throttle.wait_seconds("ann", "127.0.0.1", 0.0) > 0


def test_a_network_that_tries_ever_new_users_gets_slow_as_a_whole() -> None:
    throttle = Throttle()
    for number in range(1000):
        throttle.failed(f"user{number}", HERE, 0.0)
    assert throttle.wait_seconds("yet another", HERE, 0.0) == WAIT_SECONDS_MAX
    assert throttle.wait_seconds("yet another", THERE, 0.0) == 0
    assert len(throttle) == USERS_PER_NETWORK_MAX + 1


def test_success_of_one_user_does_not_free_the_network() -> None:
    throttle = Throttle()
    for number in range(1000):
        throttle.failed(f"user{number}", HERE, 0.0)
    throttle.succeeded("mallory", HERE)
    assert throttle.wait_seconds("yet another", HERE, 0.0) > 0


def test_the_table_is_bounded_and_keeps_those_with_the_longest_wait() -> None:
    throttle = Throttle()
    _guess(throttle, 20)
    for number in range(ENTRIES_MAX + 100):
        throttle.failed("ann", f"10.{number >> 8}.{number & 255}.1", 1000.0)
    assert len(throttle) == ENTRIES_MAX
    throttle.failed("bob", THERE, 1000.0 + FORGET_SECONDS + 1)
    assert len(throttle) == 1


def test_addresses_of_one_machine_count_as_one() -> None:
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2:ffff::") == "2001:db8:1:2::/64"
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1")
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("192.0.2.1") != network_of("192.0.2.2")
    assert network_of("no address") == "no address"


@pytest.mark.parametrize("address", ["192.0.2.1", "::2", "localhost.example", "::ffff:192.0.2.1", "127.1"])
def test_what_is_not_this_machine(address: str) -> None:
    assert not is_loopback(address)
