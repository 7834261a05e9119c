"""What the last lines of a run say."""

from tests.faults.failures import TEXT_LENGTH_MAX, VIOLATIONS_MAX, Failure, failure_lines


def test_each_failed_scenario_is_named_with_its_engine_and_violations() -> None:
    failures = [
        Failure("kill", "sqlite", ["a commit was lost"]),
        Failure("kill", "postgres", ["one", "two"]),
    ]
    assert list(failure_lines(failures)) == [
        "FAILED kill on sqlite:",
        "    a commit was lost",
        "FAILED kill on postgres:",
        "    one",
        "    two",
    ]


def test_a_run_without_failures_has_no_such_lines() -> None:
    assert list(failure_lines([])) == []


def test_of_a_long_text_the_end_is_kept() -> None:
    traceback = "Traceback:\n" + "  a line\n" * TEXT_LENGTH_MAX + "ValueError: why"
    _, line = failure_lines([Failure("cut", "sqlite", [traceback])])
    assert line.startswith("    ... ") and line.endswith("ValueError: why")
    assert len(line) < TEXT_LENGTH_MAX + 10


def test_of_many_violations_the_first_are_kept_and_the_others_counted() -> None:
    lines = list(failure_lines([Failure("skew", "sqlite", ["wrong"] * (VIOLATIONS_MAX + 3))]))
    assert lines[-1] == "    and 3 more"
    assert len(lines) == VIOLATIONS_MAX + 2
