"""python -m tests.differential --statements 20000 --texts 20000 --conversations 2000 --scripts 1000 --seed 7

What differs, and what is refused.
"""

import argparse
import os
import sys
from collections import Counter
from difflib import ndiff
from time import monotonic

from tests import postgres_server
from tests.differential.conversations import conversation
from tests.differential.run import Report, Run, both_sides
from tests.differential.text_run import TextReport, TextRun
from tests.differential.transactions.run import ScriptReport, run_scripts
from tests.differential.wire_sides import TwoSides, two_sides

CONVERSATION_LENGTH = 12


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--scripts", type=int, default=1_000)
    parser.add_argument("--conversations", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shown", type=int, default=40, help="how many differences are printed")
    given = parser.parse_args()
    directory = postgres_server.make_directory()
    os.environ[postgres_server.SHARED_DIRECTORY_VARIABLE] = str(directory)
    began = monotonic()
    try:
        # A table that is analyzed in between gets another plan, and errors at another row.
        server = postgres_server.start(directory, "fsync=off", "autovacuum=off")
        with both_sides(server) as (ours, theirs):
            report = Run(ours, theirs, given.seed).run(given.statements)
        with both_sides(server) as (ours, theirs):
            texts = TextRun(ours, theirs, given.seed).run(given.texts)
        scripts = run_scripts(server, given.seed, given.scripts)
        with two_sides(server) as sides:
            unlike = _compare_conversations(sides, given.seed, given.conversations)
    finally:
        postgres_server.remove_directory(directory)
    _print(report, given.shown)
    _print_texts(texts, given.shown)
    _print_scripts(scripts, given.shown)
    print(*unlike[: given.shown], f"{given.conversations} conversations: {len(unlike)} different", sep="\n\n")
    print(f"{monotonic() - began:.0f} s")
    return 1 if report.differences or texts.unlike or scripts.failures or unlike else 0


def _compare_conversations(sides: TwoSides, seed: int, count: int) -> list[str]:
    found = []
    for number in range(count):
        said = conversation(f"{seed}/{number}", CONVERSATION_LENGTH)
        ours, theirs = sides.compare(said.pieces)
        if ours != theirs:
            shown = ndiff([f"{each}\n" for each in theirs], [f"{each}\n" for each in ours])
            found.append("\n".join([*said.script, "-- PostgreSQL -, here +:", "".join(shown)]))
    return found


def _print(report: Report, shown: int) -> None:
    for each in report.differences[:shown]:
        print(each.script, end="\n\n")
    print("refused:")
    for message, count in report.refusals.most_common():
        print(f"  {count:5} {message}   e.g. {report.refused[message][:200]}")
    print("undetermined (here, PostgreSQL):")
    for pair, texts in report.undetermined.items():
        print(f"  {len(texts):5} {pair}", *(f"        {each[:300]}" for each in texts[:3]), sep="\n")
    verdicts = ", ".join(f"{count} {each.value}" for each, count in report.verdicts.items())
    print(f"{report.count} statements: {verdicts}; PostgreSQL failed in {report.errors}")
    print("kinds:", dict(report.kinds), "failing:", dict(report.failed_kinds))
    counted = Counter((each.ours.sqlstate, each.theirs.sqlstate) for each in report.differences)
    print("differences by SQLSTATE (here, PostgreSQL):", dict(counted))


def _print_texts(report: TextReport, shown: int) -> None:
    for each in report.unlike[:shown]:
        print(each.script, end="\n\n")
    verdicts = ", ".join(f"{count} {each.value}" for each, count in report.verdicts.items())
    print(f"{report.count} texts: {verdicts}; PostgreSQL failed in {report.errors}")


def _print_scripts(report: ScriptReport, shown: int) -> None:
    for each in report.failures[:shown]:
        print(each.script, end="\n\n")
    print("refused in scripts:")
    for message, count in report.refusals.most_common():
        print(f"  {count:5} {message}   e.g. {report.refused[message][:200]}")
    print("undetermined in scripts (here, PostgreSQL):", dict(report.undetermined))
    kinds = ", ".join(f"{count} {each.value}" for each, count in report.kinds.items())
    print(
        f"{report.scripts} scripts of {report.statements} statements, {report.errors} of which fail: {kinds}"
    )
    print("kinds of failures:", dict(report.failure_kinds))


if __name__ == "__main__":
    sys.exit(main())
