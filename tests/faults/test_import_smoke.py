"""Imports among transactions on real nodes, a few seconds; `make faults`: longer, on both engines."""

import pytest

from tests.faults import import_history
from tests.faults.harness import Run
from tests.faults.smoke import holds, longer_run

SECONDS = 5.0

pytestmark = [
    pytest.mark.timeout(240),
]


@pytest.mark.invariant("base-exact")
@pytest.mark.invariant("I37")
@longer_run("sqlite", scenario="import_history")
def test_imports_and_transactions_are_serializable_and_watches_see_imports(run: Run) -> None:
    holds(import_history.import_history(run))
