"""Runs the scenarios on real processes and prints one line for each.

    python -m tests.faults [--quick] [--minutes N] [--repeat N] [--only NAME] [--engine NAME]

A scenario lasts 60 seconds on each engine, with --quick a few; --minutes sets it. One that fails
prints what it saw below its line and keeps its logs; the last lines of the run tell of it again, since
logs of long runs are often cut to their end.

Walk: `make faults` calls this; `scenarios` lists what there is, `failures` words the last lines.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests import postgres_server
from tests.faults.failures import Failure, failure_lines
from tests.faults.harness import Result, Run
from tests.faults.scenarios import SCENARIOS, Scenario

QUICK_SECONDS = 4.0
SECONDS = 60.0


def main() -> int:
    arguments = _arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    chosen = [scenario for scenario in SCENARIOS if not arguments.only or scenario.name == arguments.only]
    if not chosen:
        sys.exit(f"no such scenario; there are: {', '.join(scenario.name for scenario in SCENARIOS)}")
    seconds = 60 * arguments.minutes if arguments.minutes else QUICK_SECONDS if arguments.quick else SECONDS
    passed = skipped = 0
    failures: list[Failure] = []
    with _server() as server:
        for repeat in range(arguments.repeat):
            for scenario in chosen:
                for engine in _engines(scenario, arguments):
                    run = Run(engine, min(seconds, scenario.seconds_max), arguments.seed + repeat, server)
                    result = _run(scenario, run)
                    skipped += bool(result.skipped)
                    if result.violations:
                        failures.append(Failure(scenario.name, engine, result.violations))
                    passed += not result.violations and not result.skipped
    if skipped:
        print(f"{skipped} skipped")
    for line in failure_lines(failures):
        print(line)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


def _end(number: int, _: object) -> None:
    """By an exception: servers and mounts go with us."""
    print(f"ended by {signal.Signals(number).name}", flush=True)
    sys.exit(128 + number)


def _engines(scenario: Scenario, arguments: argparse.Namespace) -> list[str]:
    """Those that make sense; of a short run fewer, unless one is asked for."""
    if arguments.engine:
        return [engine for engine in scenario.engines if engine == arguments.engine]
    return list(scenario.engines_for(is_quick=arguments.quick))


def _run(scenario: Scenario, run: Run) -> Result:
    began = time.monotonic()
    files = Path(tempfile.mkdtemp(prefix="tenure-faults-"))
    try:
        result = scenario.run(replace(run, files=files))
    except Exception:
        result = Result(violations=[traceback.format_exc()])
    word = "skipped: " + result.skipped if result.skipped else "VIOLATION" if result.violations else "ok"
    counts = ", ".join(f"{name} {value}" for name, value in result.counts.items())
    took = time.monotonic() - began
    print(f"{scenario.name:18} {run.engine:9} seed {run.seed} {took:5.1f} s  {counts}  {word}", flush=True)
    for violation in result.violations:
        print(f"    {violation}", flush=True)
    if result.violations:
        print(f"    logs are kept in {files}")
    else:
        shutil.rmtree(files, ignore_errors=True)
    return result


@contextmanager
def _server() -> Iterator[postgres_server.Server]:
    directory = postgres_server.make_directory()
    try:
        yield postgres_server.start(directory)
    finally:
        postgres_server.remove_directory(directory)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SECONDS:g} seconds per scenario")
    parser.add_argument("--minutes", type=float, help="per scenario and engine")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", help="one scenario by name")
    parser.add_argument("--engine", choices=("sqlite", "postgres"))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
