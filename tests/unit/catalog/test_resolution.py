import pytest

from tenure.base.errors import RetryError
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, AnyDescriptor, next_version
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.historical import HistoricalUse
from tenure.catalog.name_resolution import InStore, Path, find, resolve
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import (
    add_column,
    create_schema,
    created,
    drop,
    new_table,
    place,
    rename,
)

PATH = Path(DEFAULT_DATABASE)
LATE = new_table(77, "late")


def looked_up(node: SchemaNode, *name: str, path: Path = PATH) -> AnyDescriptor | None:
    def look(use: CatalogUse) -> AnyDescriptor | None:
        return resolve(use, node.catalog, name, path, renew=node.leases.renew)

    return node.run(look)


def schema_named(node: SchemaNode, name: str) -> int:
    return node.run(lambda use: create_schema(node, use, name))


def test_a_bare_name_is_found_in_the_first_schema_of_the_path_that_has_it(node: SchemaNode) -> None:
    app = schema_named(node, "app")
    in_public, in_app = created(node, "t"), created(node, "t", schema=app)
    found = looked_up(node, "t")
    assert found is not None and found.id == in_public
    found = looked_up(node, "t", path=Path(DEFAULT_DATABASE, ("nowhere", "app", "public")))
    assert found is not None and found.id == in_app


def test_user_in_the_path_is_the_schema_of_that_name(node: SchemaNode) -> None:
    own = schema_named(node, "ada")
    created(node, "t")
    mine = created(node, "t", schema=own)
    found = looked_up(node, "t", path=Path(DEFAULT_DATABASE, user="ada"))
    assert found is not None and found.id == mine
    found = looked_up(node, "t", path=Path(DEFAULT_DATABASE, user="bob"))
    assert found is not None and found.id != mine


@pytest.mark.invariant("I39")
def test_the_first_of_two_parts_is_a_schema_if_the_map_has_it_and_a_database_otherwise(
    node: SchemaNode,
) -> None:
    by_database = created(node, "t")
    found = looked_up(node, "defaultdb", "t")
    assert found is not None and found.id == by_database
    schema = schema_named(node, "defaultdb")
    assert looked_up(node, "defaultdb", "t") is None
    by_schema = created(node, "t", schema=schema)
    found = looked_up(node, "defaultdb", "t")
    assert found is not None and found.id == by_schema


def test_three_parts_name_the_database(node: SchemaNode) -> None:
    id = created(node, "t")
    found = looked_up(node, "defaultdb", "public", "t", path=Path(90))
    assert found is not None and found.id == id
    assert looked_up(node, "nowhere", "public", "t") is None


@pytest.mark.invariant("I39")
def test_a_name_that_the_lease_does_not_know_is_looked_for_in_the_store(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    use = other.bind()
    with cluster.env.still():
        txn = node.store.begin()
        node.catalog.put_name(txn, place("late"), LATE.id)
        node.catalog.put(txn, next_version(LATE))
        txn.commit()
        use.txn.refresh()
        before_at = other.leases.newest_at()
        with pytest.raises(RetryError, match="newer than this node's schema lease"):
            resolve(use, other.catalog, ("late",), PATH, renew=other.leases.renew)
        assert other.leases.newest_at() > before_at
        use.close()
        found = looked_up(other, "late")
    assert found is not None and found.id == 77


def test_a_name_that_is_nowhere_is_missing(node: SchemaNode) -> None:
    assert looked_up(node, "t") is None
    id = created(node, "t")
    node.run(lambda use: drop(use, id))
    assert looked_up(node, "t") is None


@pytest.mark.invariant("I18")
def test_a_read_of_the_past_has_the_names_and_versions_of_its_time(node: SchemaNode) -> None:
    id = created(node, "t")
    then_at = node.store.snapshot().at
    node.run(lambda use: rename(use, id, "u"))
    node.run(lambda use: add_column(use, id, "c"))
    past = HistoricalUse(node.catalog, node.leases.newest, node.store.snapshot(then_at))
    found = find(past, ("t",), PATH)
    assert found is not None
    assert (found.id, found.name, found.version) == (id, "t", 1)
    assert find(past, ("u",), PATH) is None
    assert find(InStore(node.catalog, node.store.snapshot()), ("t",), PATH) is None


@pytest.mark.invariant("I18")
def test_a_read_of_the_past_takes_from_the_lease_what_was_current_then(node: SchemaNode) -> None:
    id = created(node, "t")
    created(node, "u")
    leased = node.leases.newest.descriptor(id)
    assert leased is not None
    past = HistoricalUse(node.catalog, node.leases.newest, node.store.snapshot(leased.modified_at))
    assert past.descriptor(id) is leased
    before = HistoricalUse(node.catalog, node.leases.newest, node.store.snapshot(leased.modified_at - 1))
    assert before.descriptor(id) is None
