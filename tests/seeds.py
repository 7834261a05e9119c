"""Seeds of tests that draw their cases: a few of them for `make test`, all others for `make longer`.

Walk: tests parametrize themselves with `seeds`.
"""

import pytest


def seeds(count: int, *, few: int) -> list[object]:
    return [seed if seed < few else pytest.param(seed, marks=pytest.mark.longer) for seed in range(count)]
