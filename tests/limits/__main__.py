"""All functions with inputs at their limits, in this process and over the wire: `make limits`.

    python -m tests.limits --quick              a few calls of each, inputs of 200,000 characters
    python -m tests.limits --size 67108864      as long as values can be; needs 12 GB of memory
    python -m tests.limits --only regexp

Prints each call that computes for longer than a quarter of a second without asking whether it may go on,
and each statement that does not end within a second and a half; fails if there are any.
"""

import argparse
import gc
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tenure.base.machine_memory import trim
from tests.limits.calls import drawn, surface
from tests.limits.measure import PAUSE_SECONDS_MAX, measured
from tests.limits.over_the_wire import BEAT_SECONDS_MAX, run, subjects
from tests.limits.values import pool
from tests.unit.sql.served import serving

GENEROUS = 4
"""On a machine with other work, for what is measured by the clock on the wall."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.limits")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--size", type=int, default=4_000_000)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if given.quick:
        given.size, given.calls = 200_000, 2
    failures = _in_process(given) + _over_the_wire(given)
    return 1 if failures else 0


def _in_process(given: argparse.Namespace) -> int:
    count = late = 0
    for subject in surface():
        if given.only not in subject.id:
            continue
        for call in drawn(subject, given.size, given.calls, seed=str(given.seed)):
            found = measured(call)
            count += 1
            if found.longest_seconds > PAUSE_SECONDS_MAX:
                late += 1
                print(f"{found.longest_seconds:6.2f} s without asking: {call}: {found.outcome}", flush=True)
    print(f"{count} calls, {late} of them too long without asking")
    return late


def _over_the_wire(given: argparse.Namespace) -> int:
    chosen = [each for each in subjects() if given.only in each.id]
    size, calls = min(given.size, 1_000_000), max(1, given.calls // 4)
    pool.cache_clear()
    gc.collect()
    trim()  # a node counts what its process has, and this process has made values of 64 Mi
    with TemporaryDirectory() as directory, serving(Path(directory)) as served:
        outcome = run(served, chosen, size=size, calls=calls, seed=given.seed)
    for each in outcome.late:
        print(f"{each.seconds:6.2f} s: {each.statement} of ({', '.join(each.names)})")
    beat = outcome.longest_beat_seconds
    print(f"{outcome.calls} statements, {len(outcome.late)} of them late; another client waited {beat:.2f} s")
    return len(outcome.late) + (beat > GENEROUS * BEAT_SECONDS_MAX)


if __name__ == "__main__":
    sys.exit(main())
