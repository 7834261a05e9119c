"""One connection to the oracle for all tests of a run."""

from collections.abc import Iterator

import pytest

from tests.postgres_server import Server
from tests.unit.expr.oracle import Oracle


@pytest.fixture(scope="session")
def oracle(postgres: Server) -> Iterator[Oracle]:
    oracle = Oracle(postgres)
    yield oracle
    oracle.connection.close()
