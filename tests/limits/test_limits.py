"""A sample of the corpus: no function computes for long without asking whether it may go on.

The whole is `make limits`. Here the inputs are a hundred thousand characters, and the bound is ten times as
generous.
"""

from random import Random

import pytest

from tenure.expr.function_table import FUNCTIONS
from tests.limits.calls import Subject, drawn, named, surface
from tests.limits.measure import PAUSE_SECONDS_MAX, TIMEOUT_SECONDS, measured
from tests.limits.values import pool

SIZE = 100_000
SAMPLED = 120
GENEROUS = 10

SUBJECTS = {each.id: each for each in surface()}


@pytest.mark.parametrize("seed", [1, 2])
def test_functions_ask_whether_they_may_go_on(seed: int) -> None:
    late = []
    for subject in Random(seed).sample(sorted(SUBJECTS.values(), key=lambda each: each.id), SAMPLED):
        for call in drawn(subject, SIZE, 2, seed=str(seed)):
            found = measured(call)
            if found.longest_seconds > GENEROUS * PAUSE_SECONDS_MAX:
                late.append(f"{call}: {found.longest_seconds:.2f} s")
    assert not late


def test_every_function_is_tried() -> None:
    """But for those of enums, and of types whose values only a session has."""
    tried = {each.id.split(" ")[0] for each in SUBJECTS.values()}
    left_out = {each.id for each in FUNCTIONS if each.id not in tried}
    assert all("enum" in id or _has_no_values(id) for id in left_out), left_out


def _has_no_values(id: str) -> bool:
    arguments = id.partition("(")[2].rstrip(".)").split(",")
    return any(not each.startswith("any") and not pool(each, 64) for each in arguments)


MILLION = 1_000_000


@pytest.mark.parametrize(
    ("id", "names"),
    [
        ("~~(text,text)", ("letters", "percents")),
        ("~~(text,text)", ("last", "places")),
        ("~~*(text,text)", ("accents", "underscores")),
        ("regexp_replace(text,text,text,text)", ("pairs", "word a|b", r"word \1\&", "word g")),
        ("string_to_array(text,text)", ("commas", "word ,")),
        ("to_char(timestamp,text)", ("2024-02-29 12:00:00", "dates")),
        ("to_char(numeric,text)", ("nines", "nines")),
        ("read jsonb", ("json members",)),
        ("read jsonb", ("json fault",)),
        ("read json", ("json escapes",)),
        ("read text[]", ("quoted list",)),
        ("read numeric", ("hex number",)),
        ("jsonb_pretty(jsonb)", ("different",)),
        ("log(numeric,numeric)", ("small", "near one")),
        ("exp(numeric)", ("exponent",)),
        ("normalize(text,text)", ("marks", "word NFC")),
        ("read timestamptz", ("digits",)),
        ("read interval", ("zeros",)),
        ("aggregate max(char)", ("spaces",)),
        ("aggregate percentile_cont(float8[],interval)", ("cubes", "most")),
    ],
)
def test_what_once_took_for_ever_ends(id: str, names: tuple[str, ...]) -> None:
    subject: Subject = SUBJECTS[id]
    found = measured(named(subject, names, MILLION))
    assert found.longest_seconds < GENEROUS * PAUSE_SECONDS_MAX
    assert found.seconds < GENEROUS * TIMEOUT_SECONDS
