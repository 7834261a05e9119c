"""How a smoke test states that a scenario holds, and on which engines `make test` tries it.

`make faults QUICK=1`, a part of `.ci/run`, tries every scenario, and for longer. What it tries is marked
`longer` here where it takes many seconds, so that `make test` leaves it out.

Walk: the smoke tests use it; the fixtures are in `conftest`.
"""

import pytest

from tests.faults.harness import Result
from tests.faults.scenarios import BOTH, SCENARIOS


def both_engines(*, scenario: str) -> pytest.MarkDecorator:
    """For a scenario that takes a few seconds: on SQLite in `make test`, on PostgreSQL in the longer run."""
    sqlite, postgres = BOTH
    return pytest.mark.parametrize("engine", [sqlite, _longer(postgres, scenario)])


def one_engine(engine: str, *, scenario: str) -> pytest.MarkDecorator:
    """For a scenario that takes many seconds and shows most: on this engine in `make test`."""
    assert _quick_engines(scenario) == BOTH
    return pytest.mark.parametrize("engine", [engine])


def longer_run(engine: str, *, scenario: str) -> pytest.MarkDecorator:
    """For a scenario that takes many seconds: only in the longer run."""
    return pytest.mark.parametrize("engine", [_longer(engine, scenario)])


def holds(result: Result) -> None:
    if result.skipped:
        pytest.skip(result.skipped)
    assert result.violations == []


def _longer(engine: str, scenario: str) -> object:
    assert engine in _quick_engines(scenario)
    return pytest.param(engine, marks=pytest.mark.longer)


def _quick_engines(scenario: str) -> tuple[str, ...]:
    return next(each for each in SCENARIOS if each.name == scenario).engines_for(is_quick=True)
