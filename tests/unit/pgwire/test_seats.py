"""Limits of connections, and their numbers."""

import pytest

from tenure.base.errors import TooManyConnections
from tenure.pgwire.connection_slots import SECRET_BYTES, ConnectionSlots, Seat


def take(seats: ConnectionSlots, user: str = "anna") -> Seat:
    return seats.take(user, lambda: None, secret_bytes=SECRET_BYTES)


@pytest.mark.invariant("root-gets-in")
def test_the_last_seats_are_roots() -> None:
    seats = ConnectionSlots(lambda: 1, seats_max=4, kept_for_root=2)
    take(seats)
    take(seats)
    with pytest.raises(TooManyConnections):
        take(seats)
    take(seats, "root")
    take(seats, "root")
    with pytest.raises(TooManyConnections):
        take(seats, "root")


def test_a_seat_that_was_left_is_free() -> None:
    seats = ConnectionSlots(lambda: 1, seats_max=2, kept_for_root=1)
    seats.leave(take(seats))
    take(seats)
    assert len(seats) == 1


def test_pids_tell_the_instance_and_differ() -> None:
    seats = ConnectionSlots(lambda: 3)
    pids = [take(seats).pid for _ in range(10)]
    assert len(set(pids)) == 10
    assert {pid >> 16 for pid in pids} == {3}
    assert seats.has(pids[0])
    assert not ConnectionSlots(lambda: 4).has(pids[0])


def test_pids_fit_a_signed_number_whatever_the_instance() -> None:
    assert 0 < take(ConnectionSlots(lambda: 2**40 + 5)).pid < 2**31


def test_a_pid_is_not_given_again_soon() -> None:
    seats = ConnectionSlots(lambda: 1)
    first = take(seats)
    seats.leave(first)
    assert take(seats).pid != first.pid
