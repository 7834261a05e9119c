"""Malformed messages: some thousand of them here, a million with `make fuzz`."""

import pytest

from tests.fuzz_wire import fuzz

SEEDS = range(4)
MESSAGES = 5_000


@pytest.mark.invariant("never-raises")
@pytest.mark.parametrize("seed", SEEDS)
def test_malformed_messages_are_answered_or_close_the_connection(seed: int) -> None:
    tally = fuzz(MESSAGES, seed)
    assert tally.messages >= MESSAGES
    assert tally.closed > 0
    assert tally.answered > 0
