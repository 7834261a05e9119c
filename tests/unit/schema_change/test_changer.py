"""Several transactions that change the catalog at once."""

import pytest

from tenure.base.errors import RetryError
from tests.unit.schema_change.clusters import SchemaNode
from tests.unit.schema_change.committing import PUBLIC, index_states
from tests.unit.schema_change.declared import (
    A,
    add_column,
    add_index,
    created,
    rename,
)


def test_a_long_transaction_on_one_table_delays_no_change_of_another(
    node: SchemaNode, other: SchemaNode
) -> None:
    a, b = created(node, "a"), created(node, "b")
    long = other.bind()
    long.descriptor(a)
    node.run(lambda use: add_index(use, b, A))
    node.run(lambda use: rename(use, b, "b2"))
    assert index_states(node, b)["t_a"] is PUBLIC
    assert node.store.env.monotonic() < 5
    long.close()


def test_a_transaction_that_used_an_older_version_than_it_changes_restarts(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    add_index(use, id, A)
    use.give_up([id])
    node.once(lambda other: add_column(other, id))
    with pytest.raises(RetryError):
        node.changer.commit(use)
    assert list(index_states(node, id)) == ["t_pkey"]


def test_a_stale_change_beside_rows_overwrites_nothing(node: SchemaNode, other: SchemaNode) -> None:
    """What children publish is made of what is stored and what was declared."""
    id = created(node)
    use = node.bind()
    node.insert(use, id, 1, 1, 1)
    add_index(use, id, A)
    use.give_up([id])
    other.run(lambda elsewhere: add_column(elsewhere, id, "c", default=7))
    with pytest.raises(RetryError):
        node.changer.commit(use)
    assert [column.name for column in node.table(id).columns] == ["id", "a", "b", "c"]
    assert list(index_states(node, id)) == ["t_pkey"]
    assert node.open_jobs() == []
