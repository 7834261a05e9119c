"""The choice tape: every random draw of a run, by site, so that a run can be replayed and shrunk.

A draw is a number in [0, 1) asked for at a named site. While recording it comes from the seed;
in a replay it comes from the draws that were kept, by site and by how many were drawn there
before, and a missing one is the site's default: no fault, first in first out, no delay. So each
draw that is left out makes a simpler run.

Walk: everything that chooses calls `Tape.draw` or one of its readings; `shrink` leaves draws out.
"""

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

Kept = Mapping[str, Mapping[int, float]]
"""Draws by site and position."""

T = TypeVar("T")


class Tape:
    def __init__(self, seed: int, kept: Kept | None = None) -> None:
        self.seed = seed
        self._random = random.Random(seed).random
        self._kept = kept
        self.draws: dict[str, list[float]] = {}
        self.defaults: dict[str, float] = {}

    def draw(self, site: str, default: float = 0.0) -> float:
        values = self.draws.get(site)
        if values is None:
            values = self.draws[site] = []
            self.defaults[site] = default
        if self._kept is None:
            value = self._random()
        else:
            value = self._kept.get(site, {}).get(len(values), default)
        values.append(value)
        return value

    def chance(self, site: str, rate: float) -> bool:
        """Whether something of this rate happens; nothing is drawn for what never does."""
        return rate > 0 and self.draw(site, 1.0) < rate

    def pick(self, site: str, count: int) -> int:
        return int(self.draw(site) * count)

    def choose(self, site: str, options: Sequence[T]) -> T:
        """The first option is the default: the quiet one."""
        return options[int(self.draw(site) * len(options))]

    def between(self, site: str, low: float, high: float) -> float:
        return low + self.draw(site) * (high - low)

    def deviations(self) -> dict[str, dict[int, float]]:
        """What was drawn otherwise than by default: the run replays from these alone."""
        found = {
            site: {n: value for n, value in enumerate(values) if value != self.defaults[site]}
            for site, values in self.draws.items()
        }
        return {site: values for site, values in found.items() if values}


class TapeRandom(random.Random):
    """A generator for product code whose draws are on the tape."""

    def __init__(self, tape: Tape, site: str) -> None:
        super().__init__(0)
        self._tape = tape
        self._site = site

    def random(self) -> float:
        return self._tape.draw(self._site)

    def getrandbits(self, k: int, /) -> int:
        return int(self._tape.draw(self._site) * (1 << k))
