"""Two thousand generated statements get the answers of PostgreSQL, from both executors; few are refused."""

from collections.abc import Iterator

import pytest

from tests.differential.comparison import Verdict
from tests.differential.differences import is_listed
from tests.differential.run import Report, Run, both_sides
from tests.postgres_server import Server

SEED = 18
STATEMENTS = 2_000
REFUSED_SHARE_MAX = 0.05
UNDETERMINED_SHARE_MAX = 0.01
FAILING_SHARE_MAX = 0.4
"""Statements that fail show less than those that answer."""


@pytest.fixture(scope="module")
def report(postgres: Server) -> Iterator[Report]:
    with both_sides(postgres) as (ours, theirs):
        yield Run(ours, theirs, SEED).run(STATEMENTS)


def test_generated_statements_get_the_answers_of_postgres(report: Report) -> None:
    assert not report.differences, "\n\n" + "\n\n".join(each.script for each in report.differences[:5])


def test_few_statements_are_refused(report: Report) -> None:
    assert report.refused_share <= REFUSED_SHARE_MAX, report.refusals


def test_refusals_are_listed_as_differences(report: Report) -> None:
    assert {each: text for each, text in report.refused.items() if not is_listed(each)} == {}


def test_most_statements_have_an_answer_that_can_be_compared(report: Report) -> None:
    assert report.verdicts[Verdict.UNDETERMINED] <= UNDETERMINED_SHARE_MAX * report.count
    assert report.errors <= FAILING_SHARE_MAX * report.count
