"""How a smoke test states that a scenario holds.

Walk: `test_faults_smoke` and `test_jobs_smoke` use it; the fixtures are in `conftest`.
"""

import pytest

from tests.faults.harness import Result

both_engines = pytest.mark.parametrize("engine", ["sqlite", "postgres"])


def holds(result: Result) -> None:
    if result.skipped:
        pytest.skip(result.skipped)
    assert result.violations == []
