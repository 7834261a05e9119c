"""Generated scripts of transactions get the answers of PostgreSQL, from one node and from two."""

import pytest

from tests.differential.transactions.play import Kind
from tests.differential.transactions.run import ScriptReport, run_scripts
from tests.postgres_server import Server

SEED = 8_081
SCRIPTS = 40
UNDETERMINED_SHARE_MAX = 0.15
FAILING_SHARE_MAX = 0.4
"""Statements that fail show less than those that answer; those after an error in a block all do."""


@pytest.fixture(scope="module")
def report(postgres: Server) -> ScriptReport:
    return run_scripts(postgres, SEED, SCRIPTS)


def test_scripts_get_the_answers_of_postgres(report: ScriptReport) -> None:
    assert not report.failures, "\n\n" + "\n\n".join(each.script for each in report.failures[:5])


def test_most_scripts_have_an_outcome_that_can_be_compared(report: ScriptReport) -> None:
    assert report.kinds[Kind.UNDETERMINED] <= UNDETERMINED_SHARE_MAX * sum(report.kinds.values())
    assert report.errors <= FAILING_SHARE_MAX * report.statements
