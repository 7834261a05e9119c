"""What the tests have Spark do: top-level functions, since executors import them by name."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tenure.base.errors import Unavailable, UserError
from tenure.pipeline.tasks import Attempt


class OddInput(UserError):
    sqlstate = "22P02"

    def __init__(self, number: int) -> None:
        super().__init__(f'"{number}" is odd', hint="Give even ones.", detail="All others are even.")
        self.number = number


def square(number: int, attempt: Attempt) -> int:
    return number * number


def name_of(number: int, attempt: Attempt) -> str:
    return attempt.name


def refuse_odd(number: int, attempt: Attempt) -> int:
    if number % 2:
        raise OddInput(number)
    return number


def divide_by(number: int, attempt: Attempt) -> float:
    return 1 / number


def unreachable(number: int, attempt: Attempt) -> int:
    raise Unavailable("the store cannot be reached")


def fail_once(directory: str, attempt: Attempt) -> str:
    """Fails at the first attempt of each task; leaves a file for each attempt."""
    is_first = not os.listdir(directory)
    (Path(directory) / attempt.name).touch()
    if is_first:
        raise ConnectionResetError("not yet")
    return attempt.name


def wait_and_mark(directory: str, attempt: Attempt) -> None:
    """Says that it has begun, waits for long, and says if it came to its end."""
    place = Path(directory)
    (place / f"begun-{os.getpid()}").touch()
    time.sleep(30)
    (place / f"ended-{os.getpid()}").touch()


def rows_below(number: int, attempt: Attempt) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"number": pa.array(range(number), pa.int64())})


def odd_rows(number: int, attempt: Attempt) -> Iterator[pa.RecordBatch]:
    refuse_odd(number, attempt)
    yield from rows_below(number, attempt)
