"""The queue before the section: fair between processes, passed by urgent callers, left by the dead."""

import fcntl
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.storage.sqlite.turnstile import Turnstile
from tests.unit.storage.sections import in_section

TURNS = 150
PATIENCE_SECONDS = 30.0

ALTERNATE = f"""
import os, sys, time
from tenure.storage.sqlite.turnstile import Turnstile
path, log, name = sys.argv[1:]
turnstile = Turnstile(path)
out = os.open(log, os.O_WRONLY | os.O_APPEND)
print("ready", flush=True)
for _ in range({TURNS}):
    turnstile.enter()
    os.write(out, name.encode())
    time.sleep(0.0005)
    turnstile.leave()
"""

HOLD = """
import sys, time
from tenure.storage.sqlite.turnstile import Turnstile
Turnstile(sys.argv[1]).enter()
print("inside", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def turnstile(path: str) -> Iterator[Turnstile]:
    turnstile = Turnstile(path)
    yield turnstile
    turnstile.close()


def spawn(script: str, *arguments: str) -> subprocess.Popen[str]:
    source = Path(__file__).resolve().parents[3] / "src"
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def longest_run_while_both_compete(order: str) -> int:
    both = order[: min(order.rindex(name) for name in set(order)) + 1]
    return max(len(list(run)) for _, run in itertools.groupby(both))


def test_two_processes_take_turns(path: str, tmp_path: Path, turnstile: Turnstile) -> None:
    log = tmp_path / "log"
    log.touch()
    with in_section(turnstile):
        processes = [spawn(ALTERNATE, path, str(log), name) for name in "ab"]
        assert [line_of(process) for process in processes] == ["ready", "ready"]
    for process in processes:
        process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0
    order = log.read_text()
    assert len(order) == 2 * TURNS
    # One lock instead of two gives runs as long as the whole test.
    assert longest_run_while_both_compete(order) <= TURNS // 10


def test_the_section_is_exclusive(path: str) -> None:
    inside = itertools.count()
    counts: list[int] = []
    present = threading.Semaphore(1)

    def work() -> None:
        turnstile = Turnstile(path)
        for _ in range(50):
            with in_section(turnstile):
                assert present.acquire(blocking=False), "two are in the section at once"
                counts.append(next(inside))
                present.release()
        turnstile.close()

    run_all([work] * 4)
    assert counts == list(range(200))


def run_all(works: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert errors == []
    assert not any(thread.is_alive() for thread in threads)


def test_an_urgent_caller_does_not_stand_in_the_queue(path: str, turnstile: Turnstile) -> None:
    entered = threading.Event()

    def come_ordinarily() -> None:
        with in_section(turnstile):
            entered.set()

    urgent = Turnstile(path, urgent=True)
    with open(path + "-queue") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        ordinary = threading.Thread(target=come_ordinarily, daemon=True)
        ordinary.start()
        with in_section(urgent):
            assert not entered.is_set()
    ordinary.join(PATIENCE_SECONDS)
    assert entered.is_set()
    urgent.close()


def test_a_process_that_dies_in_the_section_leaves_it_open(path: str, turnstile: Turnstile) -> None:
    process = spawn(HOLD, path)
    assert line_of(process) == "inside"
    process.kill()
    process.communicate()
    with in_section(turnstile):
        pass


def test_the_lock_files_are_for_the_owner_alone(path: str, turnstile: Turnstile) -> None:
    for suffix in ("-queue", "-section"):
        assert os.stat(path + suffix).st_mode & 0o777 == 0o600
