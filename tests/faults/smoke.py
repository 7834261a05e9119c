"""How a smoke test states that a scenario holds, and on which engines it is tried.

Walk: the smoke tests use it; the fixtures are in `conftest`.
"""

import pytest

from tests.faults.harness import Result
from tests.faults.scenarios import BOTH, SCENARIOS

both_engines = pytest.mark.parametrize("engine", BOTH)


def one_engine(engine: str, *, scenario: str) -> pytest.MarkDecorator:
    """For a scenario that takes many seconds: `make faults QUICK=1` runs it on both engines, and longer."""
    listed = next(each for each in SCENARIOS if each.name == scenario)
    assert listed.engines_for(is_quick=True) == BOTH
    return pytest.mark.parametrize("engine", [engine])


def holds(result: Result) -> None:
    if result.skipped:
        pytest.skip(result.skipped)
    assert result.violations == []
