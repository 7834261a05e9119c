"""Databases that become schemas while another node uses them: see `conversion_transcript`.

UPDATE=1 writes what happened into the files instead of comparing.
"""

import os
from pathlib import Path

import pytest

from tests.scripts.conversion_transcript import play
from tests.scripts.test_transcripts import rewrite
from tests.scripts.transcript import Case, read_cases
from tests.unit.schema_change.declared import inconsistent_names
from tests.unit.sql.sessions import running

FOLDER = Path(__file__).resolve().parent / "conversion"
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}: {case.name}")
@pytest.mark.invariant("I38")
@pytest.mark.invariant("I39")
def test_what_happens_is_what_is_written(case: Case, tmp_path: Path) -> None:
    with running(tmp_path) as first, running(tmp_path) as second:
        played = play(case, {"a": first, "b": second})
        assert inconsistent_names(first) == []
    if os.environ.get("UPDATE"):
        rewrite(case, played)
    else:
        assert played == list(case.lines)
