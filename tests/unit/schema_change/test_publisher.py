"""Publishing: one version per commit, each from the one before it, names in the same commit."""

import pytest

from tenure.base.errors import LockNotAvailable, RetryError
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, Database, replace
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import create_schema, created, inconsistent_names, new_table

NOBODY = LeaseWaiter(ZERO_AT)


def publish(node: SchemaNode, *descriptors: object, settled: dict[int, int]) -> None:
    node.transact(lambda txn: node.publisher.publish(txn, descriptors, settled))  # type: ignore[arg-type]


@pytest.mark.invariant("I12")
def test_versions_go_up_by_one_per_commit_and_bear_its_time(node: SchemaNode) -> None:
    id = created(node)
    seen = []
    for _ in range(3):
        table = node.table(id)
        publish(node, replace(table, comment="x"), settled={id: table.modified_at})
        seen.append((node.table(id).version, node.table(id).modified_at == node.store.snapshot().at))
    assert seen == [(2, True), (3, True), (4, True)]


@pytest.mark.invariant("I12")
def test_a_version_that_is_not_the_stored_one_is_refused(node: SchemaNode) -> None:
    id = created(node)
    table = node.table(id)
    publish(node, table, settled={id: table.modified_at})
    with pytest.raises(RetryError):
        publish(node, table, settled={id: node.table(id).modified_at})
    with pytest.raises(RetryError):
        publish(node, new_table(id, "again"), settled={})


@pytest.mark.invariant("I12")
def test_nothing_is_published_that_was_not_waited_for(node: SchemaNode) -> None:
    id = created(node)
    first = node.table(id)
    with pytest.raises(RetryError):
        publish(node, first, settled={})
    publish(node, first, settled={id: first.modified_at})
    with pytest.raises(RetryError):  # what was shown of a former version says nothing of this one
        publish(node, node.table(id), settled={id: first.modified_at})


@pytest.mark.invariant("I12")
def test_settling_waits_for_leases_on_the_version_before(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    cluster.settle()
    use = other.bind()
    use.descriptor(id)
    settled = node.publisher.settle([id], NOBODY, timeout=0.5)
    publish(node, node.table(id), settled=dict(settled))
    with pytest.raises(LockNotAvailable):
        node.publisher.settle([id], NOBODY, timeout=0.5)
    use.close()
    assert node.publisher.settle([id], NOBODY, timeout=0.5) == {id: node.table(id).modified_at}


@pytest.mark.invariant("I12")
def test_a_node_that_comes_meanwhile_makes_one_not_alone(cluster: Cluster, node: SchemaNode) -> None:
    id = created(node)
    txn = node.store.begin()
    settled = node.publisher.alone(txn, [id])
    cluster.add()
    node.publisher.publish(txn, [node.table(id)], settled)
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.invariant("I38")
def test_a_database_gets_a_new_version_with_every_change_of_its_map(node: SchemaNode) -> None:
    def version() -> int:
        database = node.stored(DEFAULT_DATABASE)
        assert isinstance(database, Database)
        return database.version

    before = version()
    id = node.run(lambda use: create_schema(node, use, "s"))
    assert version() == before + 1
    schema = node.stored(id)
    assert schema is not None
    affected = node.publisher.affected([replace(schema, name="r")])
    assert affected == [DEFAULT_DATABASE, id]
    assert node.publisher.affected([replace(schema, owner="somebody")]) == [id]
    settled = node.publisher.settle(affected, NOBODY)
    publish(node, replace(schema, name="r"), settled=dict(settled))
    assert version() == before + 2
    assert inconsistent_names(node) == []


@pytest.mark.invariant("I38")
def test_a_map_does_not_change_without_its_database_having_been_waited_for(node: SchemaNode) -> None:
    id = node.run(lambda use: create_schema(node, use, "s"))
    schema = node.stored(id)
    assert schema is not None
    with pytest.raises(RetryError):
        publish(node, replace(schema, name="r"), settled={id: schema.modified_at})
    assert inconsistent_names(node) == []
