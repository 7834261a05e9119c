"""Plans are used again only where they are good, the short way only under the lease it was planned for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import TenureError
from tenure.catalog.name_resolution import Path as SearchPath
from tenure.node import Node
from tenure.sql.execution import plan_cache
from tenure.sql.execution.plan_cache import CachedPlan, PlanCache, PlanKey
from tenure.sql.session.answers import Answer
from tenure.sql.session.session_rights import StatementNeeds
from tests.unit.sql.talking import Speaker, a_node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with a_node(Path(tmp_path_factory.mktemp("plans"))) as node:
        yield node


@pytest.fixture
def one(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    speaker.run("DROP TABLE IF EXISTS p")
    speaker.run("CREATE TABLE p (id INT PRIMARY KEY, a INT)")
    speaker.run("INSERT INTO p VALUES (1, 10)")
    yield speaker
    speaker.close()


@pytest.mark.invariant("plan-current")
def test_a_plan_is_made_anew_after_its_table_has_changed(one: Speaker) -> None:
    assert one.rows("SELECT * FROM p") == [(1, 10)]
    one.run("ALTER TABLE p ADD COLUMN b INT DEFAULT 5")
    assert one.rows("SELECT * FROM p") == [(1, 10, 5)]


@pytest.mark.invariant("plan-current")
def test_a_plan_is_made_anew_when_its_name_means_another_table(one: Speaker) -> None:
    assert one.rows("SELECT a FROM p") == [(10,)]
    one.run("ALTER TABLE p RENAME TO was_p")
    one.run("CREATE TABLE p (a INT PRIMARY KEY)")
    assert one.rows("SELECT a FROM p") == []
    one.run("DROP TABLE was_p")


@pytest.mark.invariant("plan-current")
@pytest.mark.parametrize("is_in_block", [False, True])
def test_a_prepared_statement_takes_labels_that_its_enum_got_since(one: Speaker, is_in_block: bool) -> None:
    one.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    one.run("CREATE TABLE moods (id INT PRIMARY KEY, m mood)")
    one.run("PREPARE note AS INSERT INTO moods VALUES ($1, $2)")
    one.run("EXECUTE note (1, 'sad')")
    one.run("ALTER TYPE mood ADD VALUE 'calm'")
    one.run("ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'")
    if is_in_block:
        one.run("BEGIN")
        one.run("SAVEPOINT s")
    one.run("EXECUTE note (2, 'calm')")
    one.run("EXECUTE note (3, 'happy')")
    if is_in_block:
        one.run("COMMIT")
    assert one.refused("EXECUTE note (4, 'glad')") == "22P02"
    assert one.rows("SELECT m FROM moods ORDER BY id") == [("sad",), ("calm",), ("happy",)]
    one.run("DEALLOCATE note")
    one.run("DROP TABLE moods")
    one.run("DROP TYPE mood")


@pytest.mark.invariant("plan-current")
def test_a_plan_of_one_search_path_is_not_used_under_another(one: Speaker) -> None:
    one.run("CREATE SCHEMA IF NOT EXISTS apart")
    one.run("CREATE TABLE IF NOT EXISTS apart.p (a INT PRIMARY KEY)")
    assert one.rows("SELECT a FROM p") == [(10,)]
    one.run("SET search_path = apart")
    assert one.rows("SELECT a FROM p") == []
    one.run("DROP SCHEMA apart CASCADE")


@pytest.mark.invariant("plan-current")
def test_a_transaction_that_declares_something_plans_for_itself(one: Speaker) -> None:
    assert one.rows("SELECT * FROM p") == [(1, 10)]
    one.run("BEGIN")
    one.run("ALTER TABLE p ADD COLUMN c INT")
    one.run("ROLLBACK")
    assert one.rows("SELECT * FROM p") == [(1, 10)]


@pytest.mark.invariant("plan-current")
def test_a_prepared_statement_whose_columns_would_change_is_refused(one: Speaker) -> None:
    one.run("PREPARE s AS SELECT * FROM p")
    one.run("ALTER TABLE p ADD COLUMN d INT")
    with pytest.raises(TenureError) as caught:
        one.run("EXECUTE s")
    assert caught.value.sqlstate == "0A000"


def test_what_is_asked_for_often_outlives_what_comes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_cache, "PLANS_MAX", 3)
    cache = PlanCache(ManualEnv())
    path = SearchPath(1, ("public",), "root")

    def made() -> CachedPlan:
        statement: Any = object()
        return CachedPlan(statement, path=path, uses={}, names={}, lease=None, needs=StatementNeeds())

    often = PlanKey("often", path, ())
    cache.keep(often, made())
    for number in range(10):
        cache.keep(PlanKey(f"once {number}", path, ()), made())
        assert cache.find(often) is not None
    assert len(cache) == 3


def _short_way(speaker: Speaker) -> bool:
    """Whether a lookup by key goes the short way, and what it gives is right."""
    session = speaker.session
    session.prepare("", "SELECT a FROM p WHERE id = 1", ())
    session.bind("", "", ())
    prepared = session.portals.prepared_named("")
    assert prepared.lookup is not None and prepared.plan is not None
    rows = prepared.lookup.rows(
        session.state.services, prepared.plan.lease, prepared.plan.used_ids, prepared.constants or ()
    )
    answer = speaker.settled(session.execute("", ends=True, inline=True))
    assert isinstance(answer, Answer)
    assert rows is None or [tuple(row) for row in rows] == [tuple(row) for row in answer.rows]
    return rows is not None


@pytest.mark.invariant("point-leased")
def test_a_row_by_its_key_goes_the_short_way(one: Speaker) -> None:
    assert _short_way(one)


@pytest.mark.invariant("point-leased")
def test_a_lookup_planned_under_an_older_lease_goes_the_ordinary_way(one: Speaker) -> None:
    session = one.session
    session.prepare("kept", "SELECT a FROM p WHERE id = 1", ())
    prepared = session.portals.prepared_named("kept")
    assert prepared.lookup is not None and prepared.plan is not None
    one.run("ALTER TABLE p ADD COLUMN e INT")
    assert (
        prepared.lookup.rows(
            session.state.services, prepared.plan.lease, prepared.plan.used_ids, prepared.constants or ()
        )
        is None
    )
    assert _short_way(one), "planned again, it is short again"


@pytest.mark.invariant("point-leased")
def test_a_lookup_whose_table_is_held_goes_the_ordinary_way(one: Speaker) -> None:
    session = one.session
    session.prepare("kept", "SELECT a FROM p WHERE id = 1", ())
    prepared = session.portals.prepared_named("kept")
    assert prepared.lookup is not None and prepared.plan is not None
    with session.state.services.leases.hold(prepared.plan.used_ids, timeout=1.0):
        assert (
            prepared.lookup.rows(
                session.state.services, prepared.plan.lease, prepared.plan.used_ids, prepared.constants or ()
            )
            is None
        )


@pytest.mark.invariant("point-leased")
def test_a_lookup_is_not_believed_past_the_frontier(one: Speaker) -> None:
    leases = one.session.state.services.leases
    lease = leases.peek()
    assert lease is not None
    now_at = one.session.state.services.store.clock.now()
    assert leases.was_good(lease, (), now_at)
    assert not leases.was_good(lease, (), lease.frontier_at)


def test_a_key_that_is_null_finds_nothing(one: Speaker) -> None:
    assert one.rows("SELECT a FROM p WHERE id = NULL") == []
