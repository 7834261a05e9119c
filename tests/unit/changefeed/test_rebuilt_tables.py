"""The table that a consumer rebuilds from a feed is the table, at every resolved timestamp."""

import random

import pytest

from tests.seeds import seeds
from tests.unit.changefeed.feeding import Feeding
from tests.unit.changefeed.random_work import RandomWork

STEPS = 40


@pytest.mark.parametrize("seed", seeds(24, few=4))
def test_the_rebuilt_table_is_the_table(feeding: Feeding, seed: int) -> None:
    rng = random.Random(seed)
    work = RandomWork(feeding, rng)
    with feeding.feed() as feed:
        for _ in range(STEPS):
            work.step()
            if rng.random() < 0.4:
                feed.catch_up(restarts=rng.random() < 0.5)
                feed.compare()
        feed.catch_up()
        feed.compare()
