"""What is kept and what goes, as transcripts: see `retention_transcript` for how they are written.

UPDATE=1 writes what happened into the files instead of comparing.
"""

import os
from pathlib import Path

import pytest

from tests.scripts.retention_transcript import play_retention
from tests.scripts.transcript import Case, read_cases

FOLDER = Path(__file__).resolve().parent / "retention"
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}: {case.name}")
@pytest.mark.invariant("I30")
def test_what_is_kept_is_what_is_written(case: Case) -> None:
    happened = play_retention(case)
    if os.environ.get("UPDATE"):
        lines = case.path.read_text(encoding="utf-8").splitlines()
        lines[case.first : case.first + len(case.lines)] = happened
        case.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        assert happened == list(case.lines)
