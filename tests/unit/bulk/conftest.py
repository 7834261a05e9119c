from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.bulk.imports import Importing, lake_node


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bulk")


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Node]:
    with lake_node(directory) as node:
        yield node


@pytest.fixture
def importing(node: Node, directory: Path) -> Iterator[Importing]:
    made = Importing(node, directory)
    yield made
    made.talk.close()
