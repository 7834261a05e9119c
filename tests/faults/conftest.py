"""What the smoke tests of the scenarios share: a server to break, and a short run on an engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres_server
from tests.faults.harness import Run

SEED = 11


@pytest.fixture(scope="module")
def crash_server() -> Iterator[postgres_server.Server]:
    """A server that is nobody else's: it is stopped and killed."""
    directory = postgres_server.make_directory()
    yield postgres_server.start(directory)
    postgres_server.remove_directory(directory)


@pytest.fixture
def run(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """As long as the module's SECONDS says."""
    server = request.getfixturevalue("crash_server") if engine == "postgres" else None
    return Run(engine, request.module.SECONDS, SEED, server, tmp_path)
