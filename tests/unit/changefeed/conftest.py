from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.changefeed.feeding import Feeding
from tests.unit.lake_nodes import lake_node


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("feeds")


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Node]:
    with lake_node(directory) as node:
        yield node


@pytest.fixture
def feeding(node: Node) -> Iterator[Feeding]:
    feeding = Feeding(node)
    yield feeding
    feeding.talk.close()
