"""Planning is bounded: by what a statement says, not by the number of ways through it.

Without the bounds the statements here would be planned for ever; pytest's own time-out would say so.
"""

from collections.abc import Iterator

import pytest

from tenure.base.errors import QueryCanceled
from tenure.node import Node
from tenure.sql.session.answers import NotShort
from tests.unit.sql.sessions import Talk


@pytest.fixture
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    yield talk
    talk.close()


def doubling(levels: int, how: str = "") -> str:
    """Each query reads the one before twice: two to the power of `levels` ways lead to the first."""
    queries = ["c0 AS (SELECT 1 AS x)"]
    for at in range(1, levels + 1):
        before = f"c{at - 1}"
        queries.append(f"c{at} AS {how} (SELECT x FROM {before} UNION ALL SELECT x FROM {before})")
    return f"WITH {', '.join(queries)} SELECT x FROM c{levels} LIMIT 3"


def test_a_with_query_that_is_read_twice_is_planned_once(talk: Talk) -> None:
    assert talk.say(doubling(100)).rows == (("1",),) * 3


def test_what_stands_in_many_places_is_bounded(talk: Talk) -> None:
    said = talk.say(doubling(40, "NOT MATERIALIZED"))
    assert (said.sqlstate, said.message) == ("54001", "the statement is made of more than 2000 queries")
    assert "NOT MATERIALIZED" in said.hint
    assert talk.say(doubling(5, "NOT MATERIALIZED")).rows == (("1",),) * 3


def test_views_count_as_often_as_they_are_read(talk: Talk) -> None:
    talk.say("CREATE VIEW doubled0 AS SELECT 1 AS x")
    for at in range(1, 31):
        before = f"doubled{at - 1}"
        assert not talk.say(
            f"CREATE VIEW doubled{at} AS SELECT x FROM {before} UNION ALL SELECT x FROM {before}"
        ).sqlstate
    assert talk.say("SELECT count(*) FROM doubled5").rows == (("32",),)
    assert talk.say("SELECT count(*) FROM doubled30").sqlstate == "54001"


def test_only_few_queries_are_planned_on_the_doors_loop(talk: Talk) -> None:
    session = talk.session
    session.prepare("few", "SELECT (SELECT 1), (SELECT 2)", (), inline=True)
    with pytest.raises(NotShort):
        session.prepare("many", "SELECT (SELECT 1), (SELECT 2), (SELECT 3), (SELECT 4)", (), inline=True)
    session.prepare("many", "SELECT (SELECT 1), (SELECT 2), (SELECT 3), (SELECT 4)", ())


def test_planning_ends_when_its_client_gives_up(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    session = talk.session
    start = session.state.interrupts.start

    def start_and_cancel() -> None:
        start()
        session.cancel()

    monkeypatch.setattr(session.state.interrupts, "start", start_and_cancel)
    with pytest.raises(QueryCanceled):
        session.prepare("", "SELECT 17 + 4", ())
