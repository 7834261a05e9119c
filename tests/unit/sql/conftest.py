from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.postgres_server import Server
from tests.unit.sql.sessions import Oracle, running


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that serves SQL, for all tests of a module."""
    with running(tmp_path_factory.mktemp("node")) as node:
        yield node


@pytest.fixture(scope="module")
def oracle(postgres: Server) -> Iterator[Oracle]:
    oracle = Oracle(postgres)
    yield oracle
    oracle.connection.close()


@pytest.fixture(params=["alone", "with another"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    """A node, alone on its store or beside another."""
    with running(tmp_path) as node:
        if request.param == "alone":
            yield node
        else:
            with running(tmp_path):
                yield node
