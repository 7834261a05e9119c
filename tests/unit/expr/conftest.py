"""One connection to the oracle for all tests of a run."""

import pytest

from tests.postgres_server import Server
from tests.unit.expr.oracle import Oracle


@pytest.fixture(scope="session")
def oracle(postgres: Server) -> Oracle:
    return Oracle(postgres)
