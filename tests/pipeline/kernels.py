"""What the tests have Spark do: top-level functions, since executors import them by name."""

import gc
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tenure.base.errors import Unavailable, UserError
from tenure.pipeline.merge_tasks import MergedRange, MergeTask, RangeTask, merge_range
from tenure.pipeline.tasks import Attempt
from tenure.storage.engine import HEAD_BYTES

LONG_SECONDS = 60.0
"""Longer than any test would wait."""


class OddInput(UserError):
    sqlstate = "22P02"

    def __init__(self, number: int) -> None:
        super().__init__(f'"{number}" is odd', hint="Give even ones.", detail="All others are even.")
        self.number = number


class Place(NamedTuple):
    """A number, and a directory to leave marks in."""

    number: int
    directory: str

    def mark(self, name: str) -> None:
        (Path(self.directory) / name).touch()

    def marks(self, start: str = "") -> list[str]:
        return [name for name in os.listdir(self.directory) if name.startswith(start)]


def square(number: int, attempt: Attempt) -> int:
    return number * number


def name_of(number: int, attempt: Attempt) -> str:
    return attempt.name


def spared(number: int, attempt: Attempt) -> tuple[int, str]:
    """How much is not looked through for garbage, and which memory Arrow takes."""
    return gc.get_freeze_count(), pa.default_memory_pool().backend_name


def refuse_odd(number: int, attempt: Attempt) -> int:
    if number % 2:
        raise OddInput(number)
    return number


def refuse_odd_and_wait(number: int, attempt: Attempt) -> int:
    refuse_odd(number, attempt)
    time.sleep(LONG_SECONDS)
    return number


def divide_by(number: int, attempt: Attempt) -> float:
    return 1 / number


def unreachable(place: Place, attempt: Attempt) -> int:
    place.mark(attempt.name)
    raise Unavailable("the store cannot be reached")


def fail_once(place: Place, attempt: Attempt) -> str:
    """Fails at the first attempt of each task; leaves a mark for each attempt."""
    is_first = not place.marks(f"{place.number}-")
    place.mark(f"{place.number}-{attempt.name}")
    if is_first:
        raise ConnectionResetError("not yet")
    return attempt.name


def fail_at_random(number: int, attempt: Attempt) -> int:
    is_last = attempt.name.endswith("-3")
    if not is_last and random.SystemRandom().random() < 0.2:
        raise ConnectionResetError("by chance")
    return number


def wait_for_long(place: Place, attempt: Attempt) -> None:
    """Says who it is, and waits for longer than anybody would."""
    place.mark(f"begun-{os.getpid()}")
    time.sleep(LONG_SECONDS)


def write_in_a_while(place: Place, attempt: Attempt) -> None:
    """Says who it is, and after a while that it is still there."""
    place.mark(f"begun-{os.getpid()}")
    time.sleep(1.5)
    place.mark(f"written-{os.getpid()}")


def slow_square(place: Place, attempt: Attempt) -> int:
    """Says which executor it runs on, and takes a while."""
    place.mark(f"{executor_pid()}-{place.number}-{attempt.name}")
    time.sleep(0.5)
    return place.number**2


def wait_for_twin(place: Place, attempt: Attempt) -> str:
    """Task 0 ends only once it runs twice at the same time; the others at once."""
    if place.number == 0:
        place.mark(attempt.name)
        give_up = time.monotonic() + LONG_SECONDS
        while len(place.marks()) < 2:
            assert time.monotonic() < give_up, "no twin came"
            time.sleep(0.05)
    return attempt.name


def executor_pid() -> int:
    """The executor: the parent of the daemon that this worker was forked from."""
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:")))


def rows_below(number: int, attempt: Attempt) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"number": pa.array(range(number), pa.int64())})


def odd_rows(number: int, attempt: Attempt) -> Iterator[pa.RecordBatch]:
    refuse_odd(number, attempt)
    yield from rows_below(number, attempt)


def merge_or_fail(task: MergeTask, attempt: Attempt) -> MergedRange:
    """Merges, and then in some attempts but the last fails: what it had written nobody may name."""
    made = merge_range(task, attempt)
    fail_at_random(0, attempt)
    return made


def merge_slowly_at_times(task: MergeTask, attempt: Attempt) -> MergedRange:
    """Merges; the first attempt at the first range takes so long that it gets a twin, which is not slow."""
    made = merge_range(task, attempt)
    is_first = isinstance(task, RangeTask) and len(task.range.lo) == HEAD_BYTES
    if is_first and attempt.name.endswith("-0"):
        time.sleep(LONG_SECONDS)
    return made
