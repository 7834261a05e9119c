"""Waiting for what other processes do."""

import os
import time
from collections.abc import Callable

WAIT_SECONDS = 60.0


class Told(Exception):
    """The job was told to stop."""


def await_true(is_so: Callable[[], object], *, seconds: float = WAIT_SECONDS) -> None:
    give_up = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up, f"not within {seconds} s"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def children_of(pid: int) -> list[int]:
    return [int(each) for each in os.listdir("/proc") if each.isdigit() and _is_child(int(each), pid)]


def _is_child(pid: int, parent: int) -> bool:
    try:
        return parent_of(pid) == parent
    except (FileNotFoundError, ProcessLookupError):
        return False


def go_on() -> None:
    return None


def ignore(done: int, total: int) -> None:
    return None
