"""Turns of the loop: long ones are counted, and a client that sends much at once makes room for others."""

import logging
from collections.abc import Iterator
from itertools import count

import pytest

from tenure.pgwire.turns import TURN_SECONDS, Turns
from tenure.pgwire.waits import Need
from tenure.sql.session.long_turns import LONG_TURN_SECONDS, LongTurns
from tests.unit.pgwire.toy import ToyClient, Toys
from tests.unit.pgwire.wire import Talk, query, service_of, startup


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_turn_that_was_too_long_is_counted_and_its_statement_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, counted = Clock(), LongTurns()
    turns = Turns(clock, lambda: clock.now / 10, counted)
    for seconds in (LONG_TURN_SECONDS, LONG_TURN_SECONDS * 2, LONG_TURN_SECONDS * 3):
        turns.begin()
        clock.now += seconds
        turns.end(None)
    assert counted.count == 2
    assert counted.longest_seconds == pytest.approx(LONG_TURN_SECONDS * 3)
    assert [each.levelno for each in caplog.records] == [logging.WARNING] * 2
    assert "took 100 ms, computing 10: " in caplog.messages[0]


def test_what_is_left_of_a_long_turn_waits_for_the_next() -> None:
    """Each look at the clock finds that a turn's time is up."""
    ticks: Iterator[int] = count()
    turns = Turns(lambda: next(ticks) * 2 * TURN_SECONDS, lambda: 0.0, LongTurns())
    talk = Talk(service=service_of(Toys(), turns=turns))
    talk.say(startup())
    talk.connection.receive(query("one") * 3)
    waits = 0
    while talk.connection.is_blocked:
        waits += talk.connection.wait is Need.FLUSH
        talk.attend()
    assert waits >= 2
    assert isinstance(talk.connection.client, ToyClient)
