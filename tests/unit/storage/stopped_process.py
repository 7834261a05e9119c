"""A process that is stopped (SIGSTOP) inside a SQLite store's section."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STOP_INSIDE = """
import os, signal, sys
from tenure.storage.sqlite.turnstile import Turnstile
turnstile = Turnstile(sys.argv[1])
turnstile.enter()
os.kill(os.getpid(), signal.SIGSTOP)
turnstile.leave()
"""

PATIENCE_SECONDS = 30.0


@contextmanager
def stopped_inside(path: str) -> Iterator["subprocess.Popen[bytes]"]:
    """While it is entered, that process has the section; SIGCONT lets it go on and end."""
    source = Path(__file__).resolve().parents[3] / "src"
    process = subprocess.Popen(
        [sys.executable, "-c", STOP_INSIDE, path], env={**os.environ, "PYTHONPATH": str(source)}
    )
    try:
        _await_stop(process.pid)
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        assert process.wait(PATIENCE_SECONDS) == 0


def _await_stop(pid: int) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < until, "the process does not stop"
        time.sleep(0.01)
