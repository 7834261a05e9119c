from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.schema_change.declared import inconsistent_names
from tests.unit.sql.sessions import running


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    """Two nodes on one store; at the end names and descriptors agree, and no name is closed."""
    with running(tmp_path) as first, running(tmp_path) as second:
        yield first, second
        snapshot = first.store.snapshot()
        assert inconsistent_names(first) == []
        assert [each.name for each in first.catalog.list(snapshot) if each.closed_by] == []
