"""One hostile user and a node, a few seconds for each act, with generous bounds; `make faults` is strict."""

import pytest

from tests.faults import hostile_user
from tests.faults.harness import Run
from tests.faults.hostile_acts import ACTS
from tests.faults.smoke import holds, longer_run

IN_SHORT = ("sleepers", "waiters for a row", "computing in Python", "silent logins")

pytestmark = [pytest.mark.timeout(240)]


@longer_run("sqlite", scenario="hostile_user")
def test_one_hostile_user_keeps_nobody_out(engine: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    run = Run(engine, 2.0 * len(IN_SHORT), 1, None, tmp_path_factory.mktemp("hostile"))
    acts = tuple(act for act in ACTS if act.name in IN_SHORT)
    assert len(acts) == len(IN_SHORT)
    holds(hostile_user.hostile_user(run, acts))
