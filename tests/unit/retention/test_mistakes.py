"""Mistakes that need events in one order, which seeds seldom draw: each is found by a scenario of its own."""

from collections import Counter
from collections.abc import Callable

import pytest

from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, ROOT, DescriptorState, Schema
from tenure.kv.gaps import Gap, GapReason
from tenure.retention.protections.protection_records import Mode
from tenure.retention.sweeping.publication import Decisions, publish
from tenure.table.lake.manifests import no_base
from tenure.table.lake.publishing import ManifestEdit
from tenure.table.lake.publishing import publish as publish_base
from tests.simulation import retention_mistakes
from tests.simulation.mutants import Mutant
from tests.unit.retention.sweeping import MINUTE, SweptStore
from tests.unit.retention.test_orders import play

TABLE, SCHEMA = 200, 111


def sweep_from_an_old_list() -> None:
    """The ttl falls after the protection was made: the list alone tells of the protection."""
    play(("quick protect", "down", "stale sweep"), Mode.AT, Counter())


def protect_after_a_sweep() -> None:
    """The ttl rises after the sweep: the threshold alone refuses the protection."""
    play(("down", "sweep", "up", "quick protect"), Mode.AT, Counter())


def sweep_from_a_state_that_is_older_than_the_ttl() -> None:
    """A table comes under a protection after the state was read; it is covered from then on."""
    node = SweptStore()
    node.publish(Schema(SCHEMA, 1, 0, "other", ROOT, DescriptorState.PUBLIC, (), (), DEFAULT_DATABASE))
    node.create(TABLE)
    node.protect(node.now(), Mode.AFTER, SCHEMA)
    decisions = Decisions(node.services, node.tracker.refresh_now())
    node.set_ttl(1)
    node.wait(MINUTE)
    moved_at = node.alter(TABLE, schema=SCHEMA)
    node.wait(MINUTE)
    head = node.head(TABLE)
    assert node.transact(lambda txn: publish(txn, node.services, decisions, [head]))
    assert 0 < node.threshold(head) <= moved_at
    node.engine.close()


def watch_an_import() -> None:
    """It writes under heads of system records alone; a watch of several indexes is told nevertheless."""
    node = SweptStore()
    spans = [node.keyspace.head_span(node.head(TABLE, index)) for index in (1, 3)]
    watch = node.store.watch(spans, since_at=node.now())
    node.transact(
        lambda txn: publish_base(
            *(txn, node.keyspace, node.manifests, no_base(TABLE, 1), ManifestEdit(())), flushed_at=None
        )
    )
    batch = watch.next(0.0)
    assert isinstance(batch, Gap)
    assert (batch.span, batch.reason) == (spans[0], GapReason.IMPORTED)
    watch.close()
    node.engine.close()


SCENARIOS: dict[str, Callable[[], None]] = {
    "sweep published from an old list": sweep_from_an_old_list,
    "protect ignores thresholds": protect_after_a_sweep,
    "sweep by now and not by the state's time": sweep_from_a_state_that_is_older_than_the_ttl,
    "head clock not moved by an import": watch_an_import,
}


@pytest.mark.invariant("I29")
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_wrong_in_the_scenario_of_a_mistake(name: str) -> None:
    SCENARIOS[name]()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_mistake_shows_in_its_scenario(name: str) -> None:
    swaps = {each[0]: each[1] for each in retention_mistakes.ALL} | retention_mistakes.IN_SCENARIOS
    with Mutant(name, swaps[name]).applied(), pytest.raises(AssertionError):
        SCENARIOS[name]()
