"""Random numbers of a session: unpredictable, until setseed() makes them repeatable.

Seeded, they are those of PostgreSQL: xoroshiro128**, whose state two steps of splitmix64 make from the seed.
So tests and examples that begin with setseed() give the same rows here as there.

Walk: `sql.session.generated_values` keeps one for each session; `expr.functions.function` draws from it
by the Context.
"""

from collections.abc import Callable

_MASK = (1 << 64) - 1
_MANTISSA = float((1 << 52) - 1)


class RandomNumbers:
    def __init__(self, draw: Callable[[], int]) -> None:
        """`draw` returns 64 bits at random."""
        self._draw = draw
        self._state: tuple[int, int] | None = None

    def seed(self, number: float) -> None:
        """`number` is from -1 to 1."""
        seed = int(_MANTISSA * number) & _MASK
        first, seed = _split_mix(seed)
        second, _ = _split_mix(seed)
        self._state = first, second

    def bits(self) -> int:
        """The next 64."""
        if self._state is None:
            return self._draw()
        first, second = self._state
        mixed = first ^ second
        self._state = _rotated(first, 24) ^ mixed ^ (mixed << 16) & _MASK, _rotated(mixed, 37)
        return _rotated(first * 5 & _MASK, 7) * 9 & _MASK


def _split_mix(state: int) -> tuple[int, int]:
    """A number, and the next state."""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    value = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31, state


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK
