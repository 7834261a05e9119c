"""Schema changes on real processes, for a few seconds on each engine; `make faults` runs them longer."""

import pytest

from tests.faults import schema_upgrade
from tests.faults.harness import Run
from tests.faults.smoke import both_engines, holds

SECONDS = 1.5

pytestmark = [
    pytest.mark.xdist_group("faults"),
    pytest.mark.timeout(180),
]


@pytest.mark.invariant("I10")
@pytest.mark.invariant("I12")
@both_engines
def test_a_rolling_upgrade_under_schema_changes_keeps_to_two_versions_and_loses_no_change(run: Run) -> None:
    holds(schema_upgrade.schema_upgrade(run))
