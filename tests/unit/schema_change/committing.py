"""What a change of the catalog cost, and whether it left everything whole."""

from tenure.catalog.descriptors.definitions import ElementState
from tests.unit.schema_change.clusters import SchemaNode
from tests.unit.schema_change.declared import (
    inconsistent_names,
)

PUBLIC = ElementState.PUBLIC


def commits_of(node: SchemaNode, work: object) -> int:
    """How many commits the node waits for until the statement answers."""
    before = len(node.wire.groups)
    with node.store.env.still():  # type: ignore[attr-defined]
        node.once(work)  # type: ignore[arg-type]
    return len(node.wire.groups) - before


def index_states(node: SchemaNode, id: int) -> dict[str, ElementState]:
    return {index.name: index.state for index in node.table(id).indexes}


def assert_whole(node: SchemaNode, id: int) -> None:
    assert node.wrong_indexes(id) == []
    assert inconsistent_names(node) == []
    assert node.table(id).job == 0
