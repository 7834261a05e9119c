"""How the store's benchmarks measure: alternating rounds, medians, percentiles.

The machine's noise comes in waves. So ours and the peer take turns, A B A B, and the median of
each one's rounds is compared: a wave that lasts hits both, a spike hits neither.

Walk: every module of `bench.store` calls these; the results go into `bench.ratio`.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Pace(NamedTuple):
    """What one round did: how many times, how long it took, and this process's CPU time meanwhile."""

    times: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.times / self.seconds

    @property
    def cpu_micros(self) -> float:
        return self.cpu_seconds / self.times * 1e6


def timed(run: Callable[[], int]) -> Pace:
    """Runs something that returns how often it did what is measured."""
    began, cpu_began = time.perf_counter(), time.process_time()
    times = run()
    return Pace(times, time.perf_counter() - began, time.process_time() - cpu_began)


def alternate(rounds: int, *runs: Callable[[], int]) -> list[Pace]:
    """Runs each in turn, round by round; returns the round of median speed of each."""
    paces: list[list[Pace]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, of_run in zip(runs, paces, strict=True):
            of_run.append(timed(run))
    return [sorted(of_run, key=lambda pace: pace.rate)[len(of_run) // 2] for of_run in paces]


class Spread(NamedTuple):
    p50: float
    p99: float
    worst: float

    def __str__(self) -> str:
        return f"p50 {self.p50:.3f} ms, p99 {self.p99:.3f} ms, max {self.worst:.3f} ms"


def spread(millis: Sequence[float]) -> Spread:
    assert millis, "nothing was measured"
    ordered = sorted(millis)
    return Spread(
        statistics.median(ordered), ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], ordered[-1]
    )


def note(text: str) -> None:
    """Says what has no bar, beside the table that comes at the end."""
    print(f"  {text}", file=sys.stderr, flush=True)
