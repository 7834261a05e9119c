"""An engine on a file of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.env import ManualEnv
from tenure.storage.sqlite.sqlite_engine import SqliteEngine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def engine(path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(str(path), ManualEnv())
    yield engine
    engine.close()
