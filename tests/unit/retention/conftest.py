from collections.abc import Iterator

import pytest

from tests.unit.retention.protecting import ProtectedStore


@pytest.fixture
def node() -> Iterator[ProtectedStore]:
    node = ProtectedStore()
    yield node
    node.engine.close()
