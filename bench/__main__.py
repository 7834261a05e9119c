"""Runs the benchmarks: `make bench`, with ONLY=, QUICK=1 and BARS=1.

Each module of `MODULES` has `run(quick: bool) -> list[Ratio]`. It checks the answers it measures
and raises if one is wrong. `quick` is a tiny pass for correctness, whose ratios mean nothing.

A crash or a wrong answer fails the run, after the other benchmarks have had their turn; its traceback is
printed again at the end, since logs of long runs are often cut to it. A missed
bar is printed as MISSED and fails the run only with `--bars`: speed depends on the machine.

Walk: `make bench` and `.ci/run` call `main`; it calls each module's `run`.
"""

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import cast

from bench.ratio import Ratio, table

MODULES: tuple[str, ...] = (
    "store.commits",
    "store.commits_postgres",
    "store.far_away",
    "store.point_reads",
    "store.incremental_scan",
    "store.watch",
    "store.heartbeat",
    "store.simulator",
    "jobs.claims",
    "jobs.takeover",
    "jobs.pauses",
    "liveness.sessions",
    "liveness.expiry",
    "liveness.held",
    "leases.refresh",
    "leases.lookup",
    "leases.stages",
    "leases.upkeep",
    "names.resolution",
    "names.checks",
    "names.creation",
    "names.granting",
    "sql.canned",
    "sql.columns",
    "sql.point",
    "sql.insert",
    "sql.analytics",
    "sql.tpch",
    "sql.memory",
    "sql.ddl",
    "sql.initializing",
    "sql.processes",
    "clients.introspection",
    "clients.reflection",
    "clients.migrations",
    "bulk.select",
    "bulk.point",
    "bulk.references",
    "bulk.worker",
    "bulk.importing",
    "bulk.export",
    "bulk.backfill",
    "gc.foreground",
    "gc.collection",
    "gc.files",
    "gc.batches",
    "gc.modes",
    "gc.protections",
    "gc.lookup",
    "gc.watch",
    "changefeed.latency",
    "changefeed.throughput",
    "changefeed.crowds",
)
"""Dotted names below `bench`, in the order in which they run."""

BY_NAME: tuple[str, ...] = ("sql.tpch_full", "bulk.importing_full")
"""Those that take so long that they run only where they are named themselves."""


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    chosen = [name for name in MODULES if _is_chosen(name, options.only)]
    chosen += [name for name in BY_NAME if name == options.only]
    if options.only and not chosen:
        print(
            f'no benchmark is called "{options.only}"; there are: {", ".join((*MODULES, *BY_NAME))}',
            file=sys.stderr,
        )
        return 1
    measured: list[Ratio] = []
    crashed: dict[str, str] = {}
    for name in chosen:
        began = time.monotonic()
        try:
            measured += _run(name, quick=options.quick)
        except Exception:
            traceback.print_exc()
            crashed[name] = traceback.format_exc()
        print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    print(table(measured))
    return _verdict(measured, crashed, bars_fail=options.bars)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures Tenure beside its peers.")
    parser.add_argument("--only", metavar="NAME", help="run NAME and what lies below it, such as store")
    parser.add_argument("--quick", action="store_true", help="a tiny pass that checks answers, not speed")
    parser.add_argument("--bars", action="store_true", help="fail if a bar is missed")
    return parser


def _is_chosen(name: str, only: str | None) -> bool:
    return only is None or name == only or name.startswith(f"{only}.")


def _run(name: str, *, quick: bool) -> list[Ratio]:
    module = importlib.import_module(f"bench.{name}")
    return cast(list[Ratio], module.run(quick))


def _verdict(measured: Sequence[Ratio], crashed: Mapping[str, str], *, bars_fail: bool) -> int:
    missed = [ratio.name for ratio in measured if not ratio.holds]
    for name, text in crashed.items():
        print(f"crashed or answered wrongly: {name}\n{text}")
    print(f"measured={len(measured)} missed={len(missed)} crashed={len(crashed)}")
    return 1 if crashed or (bars_fail and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
