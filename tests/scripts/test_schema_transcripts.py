"""Nodes whose table changes under them, as transcripts: see `schema_transcript` for how they are written.

UPDATE=1 writes what happened into the files instead of comparing.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.env import ManualEnv
from tenure.storage.engine import Engine
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.scripts.schema_transcript import play
from tests.scripts.test_transcripts import rewrite
from tests.scripts.transcript import Case, read_cases

FOLDER = Path(__file__).resolve().parent / "schema"
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = SqliteEngine(MEMORY, ManualEnv())
    yield engine
    engine.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}: {case.name}")
@pytest.mark.invariant("I10")
@pytest.mark.invariant("I11")
@pytest.mark.invariant("I12")
def test_what_happens_is_what_is_written(case: Case, engine: Engine) -> None:
    played = play(case, engine)
    if os.environ.get("UPDATE"):
        rewrite(case, played)
    else:
        assert played == list(case.lines)
