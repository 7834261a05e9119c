"""Deterministic simulation of store, sessions, jobs and schema: `python -m tests.simulation --seeds 300`.

    seeds ──► processes ──► a run each (every 20th twice) ──► figures, "sometimes", violations
                                        └ first failure ──► shrunk, shown, written to --out

Walk: `main` -> `_simulate` -> `cluster.run`; `--mutants` -> `mutants.hunt`; `--replay` -> `shrink.load`.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time

TRANSACTIONS_MIN = 200_000
"""Random transactions that one run compares with the model, whatever the number of seeds."""

TWICE_EVERY = 21
"""Not a multiple of five, so that runs of all worlds are repeated."""
VOID_FROM = 1_000
"""From so many seeds on, everything of the "sometimes" list must have happened."""

BATCH = 25

BOTH = "both"
"""Seeds take turns: of five, one is a run of the store, one each of schema changes, jobs, lake, retention."""
SCHEMA_TURNS = (
    *("schema", "schema", "expiring", "schema", "rights"),
    *("schema", "schema", "expiring", "schema", "conversions"),
)
"""The profiles of seeds of schema changes: one of five has the older leases, one rights or conversions."""
SEQUENTIAL_MIN = 20_000


@dataclass
class Figures:
    seeds: int = 0
    transactions: int = 0
    cpu_seconds: float = 0.0
    virtual_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    unequal: list[int] = field(default_factory=list)

    def add(self, other: "Figures") -> None:
        self.seeds += other.seeds
        self.transactions += other.transactions
        self.cpu_seconds += other.cpu_seconds
        self.virtual_seconds += other.virtual_seconds
        self.faults += other.faults
        self.seen += other.seen
        self.failures += other.failures
        self.unequal += other.unequal


def main() -> int:
    options = _options()
    if options.replay:
        return _replay(options.replay)
    figures = _simulate(options)
    print(f"{figures.seeds} seeds, {figures.seeds / max(figures.cpu_seconds, 1e-9):.1f} per second and core")
    _print_counts("faults by kind", sorted(figures.faults.items()))
    unseen = _print_sometimes(figures, options.profile)
    survivors = _hunt_all(options) if options.mutants else 0
    compared = figures.transactions + _sequential(options, figures)
    print(f"model: {compared} random transactions compared with a dictionary of histories")
    _print_violations(figures)
    if figures.unequal:
        print(f"VOID: run twice, these seeds differed: {figures.unequal}")
    if unseen and figures.seeds >= VOID_FROM:
        print(f"VOID: {figures.seeds} seeds without: {', '.join(unseen)}")
    if figures.failures:
        _shrink_first(options, figures)
        _print_violations(figures)  # again: the shrunk run is long, and logs are often cut to their end
    hours = figures.virtual_seconds / 3600
    violations = len(figures.failures)
    print(
        f"seeds={figures.seeds} virtual_hours={hours:.2f} faults={figures.faults.total()} "
        f"violations={violations}"
    )
    is_void = bool(figures.unequal) or (bool(unseen) and figures.seeds >= VOID_FROM)
    return 1 if violations or survivors or is_void else 0


def _print_violations(figures: Figures) -> None:
    for seed, predicate, message in figures.failures[:10]:
        print(f"VIOLATION seed {seed}: {predicate}: {message}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", default="300", help="a count, or FIRST..LAST")
    parser.add_argument("--seconds", type=float, default=60.0, help="virtual seconds per seed")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--profile", default=BOTH, help="which mix of operations; by default all worlds")
    parser.add_argument("--mutants", action="store_true", help="check that every known mistake is caught")
    parser.add_argument("--only", default="", help="with --mutants: those whose name contains this")
    parser.add_argument("--out", type=Path, help="where the shrunk tape of a failure goes")
    parser.add_argument("--replay", type=Path, help="run a tape that --out has written")
    return parser.parse_args()


def seed_range(text: str) -> range:
    if ".." in text:
        first, last = text.split("..")
        return range(int(first), int(last))
    return range(int(text))


def profile_of(seed: int, profile: str) -> str:
    if profile != BOTH:
        return profile
    world = ("all", "schema", "jobs", "bases", "retention")[seed % 5]
    turn = seed // 5 % len(SCHEMA_TURNS)
    return SCHEMA_TURNS[turn] if world == "schema" else world


# ── seeds ────────────────────────────────────────────────────────────────────────────────────────


def _simulate(options: argparse.Namespace) -> Figures:
    seeds = seed_range(options.seeds)
    batches = [seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH)]
    arguments = [(batch, options.seconds, options.nodes, options.profile) for batch in batches]
    figures = Figures()
    for each in _in_processes(options.jobs, run_batch, arguments):
        figures.add(each)
    figures.failures.sort()
    return figures


def run_batch(arguments: tuple[range, float, int, str]) -> Figures:
    from tests.simulation import cluster

    seeds, seconds, nodes, profile = arguments
    figures = Figures()
    for seed in seeds:
        began = process_time()
        result = cluster.run(seed, seconds=seconds, nodes=nodes, profile=profile_of(seed, profile))
        figures.cpu_seconds += process_time() - began
        figures.seeds += 1
        figures.virtual_seconds += result.knobs.seconds
        figures.transactions += len(result.trace.txns)
        figures.faults += result.faults
        figures.seen += result.trace.seen
        if result.violations:
            first = result.violations[0]
            figures.failures.append((seed, first.predicate, first.message))
        if seed % TWICE_EVERY == 0:
            again = cluster.run(seed, seconds=seconds, nodes=nodes, profile=profile_of(seed, profile))
            if again.trace_hash != result.trace_hash:
                figures.unequal.append(seed)
    return figures


def _in_processes(jobs: int, run: "object", arguments: Iterable["object"]) -> Iterator[Figures]:
    assert callable(run)
    if jobs <= 1:
        yield from map(run, arguments)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, arguments)


def _sequential(options: argparse.Namespace, figures: Figures) -> int:
    """Fills up to the minimum with transactions that run one after the other."""
    wanted = max(SEQUENTIAL_MIN, TRANSACTIONS_MIN - figures.transactions)
    share = -(-wanted // (4 * options.jobs))
    arguments = [(n, share) for n in range(4 * options.jobs)]
    return sum(count.transactions for count in _in_processes(options.jobs, run_sequential, arguments))


def run_sequential(arguments: tuple[int, int]) -> Figures:
    from tests.simulation.model import sequential

    number, transactions = arguments
    return Figures(transactions=sequential(number * 1_000_000, transactions))


def _print_counts(title: str, counts: Iterable[tuple[str, int]]) -> None:
    print(f"{title}:")
    for name, count in counts:
        print(f"  {count:8} {name}")


def _print_sometimes(figures: Figures, profile: str) -> list[str]:
    from tests.simulation import lake_world, retention_client, schema_profiles, sometimes, steering

    names: tuple[str, ...] = sometimes.JOB_SOMETIMES if profile in steering.PROFILES else sometimes.SOMETIMES
    if profile in schema_profiles.PROFILES:
        names = sometimes.SCHEMA_SOMETIMES
    if profile in lake_world.PROFILES:
        names = sometimes.LAKE_SOMETIMES
    if profile in retention_client.PROFILES:
        names = sometimes.RETENTION_SOMETIMES
    if profile == BOTH:
        names += sometimes.JOB_SOMETIMES + sometimes.SCHEMA_SOMETIMES
        names += sometimes.LAKE_SOMETIMES + sometimes.RETENTION_SOMETIMES
    _print_counts("sometimes", [(name, figures.seen[name]) for name in names if figures.seen[name]])
    unseen = [name for name in names if not figures.seen[name]]
    if unseen:
        print(f"  not seen: {', '.join(unseen)}")
    return unseen


# ── mutants ──────────────────────────────────────────────────────────────────────────────────────


def _hunt_all(options: argparse.Namespace) -> int:
    from tests.simulation.mutants import MUTANTS

    names = [mutant.name for mutant in MUTANTS if options.only in mutant.name]
    arguments = [(name, options.seconds, options.nodes) for name in names]
    print("mutants:")
    survivors = 0
    for figures in _in_processes(options.jobs, hunt_one, arguments):
        count, predicate, name = figures.failures[0]
        survivors += not predicate
        said = f"killed by {predicate} after {count} seeds" if predicate else f"SURVIVED {count} seeds"
        print(f"  {name:45} {said}", flush=True)
    print(f"mutants killed: {len(names) - survivors} of {len(names)}")
    return survivors


def hunt_one(arguments: tuple[str, float, int]) -> Figures:
    from tests.simulation import mutants

    name, seconds, nodes = arguments
    count, result = mutants.hunt(
        mutants.named(name), seeds=range(mutants.SEEDS_MAX), seconds=seconds, nodes=nodes
    )
    predicate = result.violations[0].predicate if result else ""
    return Figures(failures=[(count, predicate, name)])


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def _shrink_first(options: argparse.Namespace, figures: Figures) -> None:
    from tests.simulation import cluster, shrink

    seed = figures.failures[0][0]
    profile = profile_of(seed, options.profile)
    result = cluster.run(seed, seconds=options.seconds, nodes=options.nodes, profile=profile)
    if not result.violations:
        print(f"seed {seed} does not fail again: the run is void")
        return
    began = perf_counter()
    case = shrink.shrink(
        shrink.case_of(result, seconds=options.seconds, nodes=options.nodes, profile=profile)
    )
    print(f"shrunk in {perf_counter() - began:.0f} s")
    print("\n".join(shrink.describe(case)))
    if options.out:
        shrink.save(case, options.out)
        print(f"replay with: python -m tests.simulation --replay {options.out}")


def _replay(path: Path) -> int:
    from tests.simulation import mutants, shrink

    case = shrink.load(path)
    with mutants.named(case.mutant).applied() if case.mutant else nullcontext():
        print("\n".join(shrink.describe(case)))
        return 1 if case.violation() is not None else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], environment)
    sys.exit(main())
