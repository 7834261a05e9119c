"""The end of a process, with real signals: two that come close together are still two."""

import subprocess
import sys

PROGRAM = """
import os, signal, time
from tenure.base.process_ending import Ending
from tenure.base.env import SystemEnv

class SlowToStart(SystemEnv):
    def spawn(self, name, run):
        return super().spawn(name, lambda: (time.sleep(0.2), run()))

with Ending(SlowToStart(), drain_seconds=None):
    for _ in range({signals}):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            pass
    {then}
"""


def test_a_second_signal_counts_though_the_first_was_not_looked_at_yet() -> None:
    ended = _run(signals=2, then="time.sleep(600)")
    assert ended.returncode == 1
    assert "a second signal came during the drain" in ended.stderr


def test_one_signal_lets_the_drain_end_by_itself() -> None:
    ended = _run(signals=1, then="print('drained')")
    assert (ended.returncode, ended.stdout) == (0, "drained\n"), ended.stderr


def _run(*, signals: int, then: str) -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.format(signals=signals, then=then)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
