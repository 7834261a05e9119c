"""Two thousand texts, most of them broken, are read as PostgreSQL reads them, or refused in its words."""

from collections.abc import Iterator

import pytest

from tests.differential.differences import is_listed
from tests.differential.run import both_sides
from tests.differential.text_run import TextReport, TextRun
from tests.postgres_server import Server

SEED = 18
TEXTS = 2_000
REFUSED_SHARE_MAX = 0.05


@pytest.fixture(scope="module")
def report(postgres: Server) -> Iterator[TextReport]:
    with both_sides(postgres) as (ours, theirs):
        yield TextRun(ours, theirs, SEED).run(TEXTS)


def test_texts_mean_what_they_mean_in_postgres(report: TextReport) -> None:
    assert not report.unlike, "\n\n" + "\n\n".join(each.script for each in report.unlike[:5])


def test_few_texts_are_refused(report: TextReport) -> None:
    assert report.refused_share <= REFUSED_SHARE_MAX, report.refusals


def test_refusals_of_texts_are_listed_as_differences(report: TextReport) -> None:
    assert {each: text for each, text in report.refused.items() if not is_listed(each)} == {}
