"""A change of a table that is being changed already, with nodes as they are."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import RetryError
from tenure.catalog.descriptors.definitions import Table, place_of, replace
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.kv.transaction import Transaction
from tenure.node import Node, NodeOptions
from tests.unit.table.tables import DELETE_ONLY, A, B, index, table

TABLE = 200


def create_table(node: Node, txn: Transaction) -> None:
    made = replace(table(id=TABLE), next_column=9, next_index=2)
    node.catalog.put(txn, made)
    node.catalog.put_name(txn, place_of(made), TABLE)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    first = Node(NodeOptions(f"sqlite:{tmp_path}/store.db"), SystemEnv())
    first.store.transact(partial(create_table, first))
    nodes = [first, Node(NodeOptions(f"sqlite:{tmp_path}/store.db"), SystemEnv())]
    for node in nodes:
        node.leases.renew()
    yield nodes
    for node in nodes:
        node.stop()


def declare(node: Node, name: str, column: int) -> CatalogUse:
    use = node.leases.bind(node.store.begin())
    found = use.descriptor(TABLE)
    assert isinstance(found, Table)
    added = index(found.next_index, name, column, state=DELETE_ONLY)
    changed = replace(found, indexes=(*found.indexes, added), next_index=found.next_index + 1)
    use.draft.declare(changed, made_from=found.version)
    return use


def stored(node: Node) -> Table:
    found = node.catalog.get(node.store.snapshot(), TABLE)
    assert isinstance(found, Table)
    return found


@pytest.mark.timeout(60)
def test_two_changes_do_not_wait_for_each_other(nodes: list[Node]) -> None:
    first, second = nodes
    later = declare(second, "t_b", B)
    earlier = declare(first, "t_a", A)
    change = threading.Thread(target=first.changer.commit, args=(earlier,))
    watch = first.store.watch([first.catalog.span], since_at=first.store.snapshot().at)
    change.start()
    while not stored(first).job:
        watch.next(1.0, changes_only=True)
    watch.close()
    with pytest.raises(RetryError):
        second.changer.commit(later)
    change.join()
    assert {each.name for each in stored(first).indexes} == {"t_pkey", "t_a"}


@pytest.mark.timeout(60)
def test_whoever_made_a_change_uses_it_from_then_on(nodes: list[Node]) -> None:
    first, _ = nodes
    first.changer.commit(declare(first, "t_a", A))
    use = first.leases.bind(first.store.begin())
    found = use.descriptor(TABLE)
    use.close()
    assert found == stored(first)


@pytest.mark.timeout(60)
def test_a_change_declared_on_an_older_version_starts_over(nodes: list[Node]) -> None:
    first, second = nodes
    later = declare(second, "t_b", B)
    later.give_up([TABLE])
    first.changer.commit(declare(first, "t_a", A))
    with pytest.raises(RetryError):
        second.changer.commit(later)
    second.changer.commit(declare(second, "t_b", B))
    assert {each.name for each in stored(first).indexes} == {"t_pkey", "t_a", "t_b"}
