from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.bulk import upkeep
from tenure.node import Node
from tests.unit.bulk.imports import Importing
from tests.unit.lake_nodes import lake_node

UPKEEP_SECONDS = 0.1


@pytest.fixture(scope="module", autouse=True)
def prompt_upkeep() -> Iterator[None]:
    """The upkeep of lakes steps often: tests that wait for what it does need not wait for 5 s."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(upkeep, "STEP_SECONDS", UPKEEP_SECONDS)
        yield


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
