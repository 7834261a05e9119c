"""The catalog as of a fixed time."""

import pytest

from tenure.catalog.leases.historical import HistoricalUse
from tests.unit.catalog.leasing import bump
from tests.unit.schema_change.clusters import SchemaNode
from tests.unit.schema_change.declared import created, place, rename


def at(node: SchemaNode, time_at: int) -> HistoricalUse:
    return HistoricalUse(node.catalog, node.leases.newest, node.store.snapshot(time_at))


@pytest.mark.invariant("I18")
def test_every_version_is_used_from_its_own_time_to_the_next_ones(node: SchemaNode) -> None:
    id = created(node)
    versions = [node.table(id)]
    for _ in range(3):
        bump(node, id)
        versions.append(node.table(id))
    node.leases.renew()
    bump(node, id)  # the newest lease does not know this one
    versions.append(node.table(id))
    for version in versions:
        assert at(node, version.modified_at).descriptor(id) == version
        earlier = at(node, version.modified_at - 1).descriptor(id)
        assert earlier is None or earlier.version == version.version - 1


@pytest.mark.invariant("I18")
def test_names_are_those_of_the_time(node: SchemaNode) -> None:
    id = created(node)
    before_at = node.store.snapshot().at
    node.run(lambda use: rename(use, id, "u"))
    assert at(node, before_at).id_at(place("t")) == id
    assert at(node, before_at).id_at(place("u")) is None
    assert at(node, node.store.snapshot().at).id_at(place("t")) is None


def test_what_the_lease_has_is_not_read_again(node: SchemaNode) -> None:
    id = created(node)
    use = at(node, node.leases.newest_at())
    node.wire.is_dead = True
    assert use.descriptor(id) is node.leases.newest.descriptor(id)
    node.wire.is_dead = False
