"""How soon a worker is ready for its first task: from its start to its ready line.

The archive of classes is made, and the disk is warm: a first worker is started and ended before.

Walk: `bench.__main__` -> `run`.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.bulk.workers import crew
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.worker import cache_directory

READY_SECONDS = 8.0
ARCHIVE_SECONDS = 120
"""How long the first worker's archive is waited for; it is made beside, at low priority."""


def run(quick: bool) -> list[Ratio]:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as files:
        first = _start(Path(files))
        _await_archive()
        starts = [_start(Path(files)) for _ in range(1 if quick else 3)]
    shown = ", ".join(f"{each:.1f}" for each in starts)
    note(f"bulk.worker: ready in {first:.1f} s at first, then {shown}")
    found = statistics.median(starts)
    return [
        compare("bulk.worker", ours=found, peer=READY_SECONDS, unit="s", bar=Bar.AT_MOST, limit=1.0),
    ]


def _start(files: Path) -> float:
    with crew(files, executors=2) as place:
        return place.worker_seconds


def _await_archive() -> None:
    directory = cache_directory(os.environ)
    assert directory is not None, "nobody has a place of his own to keep the archive in"
    until = time.monotonic() + ARCHIVE_SECONDS
    while not list(directory.glob("spark-*.jsa")) and time.monotonic() < until:
        time.sleep(0.5)
