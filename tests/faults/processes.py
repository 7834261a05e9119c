"""Programs of ours as processes under names: each has a log, and none outlives whoever started it.

Walk: `sql_nodes` and `bulk_fleet` start nodes and workers by this.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.faults.harness import ROOT

READY_SECONDS_MAX = 120.0
EXIT_SECONDS_MAX = 40.0


class Processes:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        """Where the logs are."""
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, *, grace_seconds: float = 0.0) -> None:
        """Ends them all; with some grace, in good order if they can."""
        running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM if grace_seconds else signal.SIGKILL)
        for process in running:
            try:
                process.wait(grace_seconds or None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for process in self._processes.values():
            _close_output(process)

    def spawn(
        self, name: str, module: str, *arguments: str, variables: Mapping[str, str] | None = None
    ) -> None:
        """Starts one, which says on its output when it is ready."""
        if name in self._processes:
            _close_output(self._processes[name])
        path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        with self.log(name).open("ab") as errors:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env={**os.environ, "PYTHONPATH": path, **(variables or {})},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def await_ready(self, name: str) -> str:
        """What it says when it is ready."""
        output = self._processes[name].stdout
        assert output is not None
        has_said = select.select([output], [], [], READY_SECONDS_MAX)[0]
        line = output.readline() if has_said else ""
        assert line.startswith("ready"), f"{name} cannot start: {self.log(name).read_text()[-2000:]}"
        return line

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def names(self) -> list[str]:
        return list(self._processes)

    def process(self, name: str) -> "subprocess.Popen[str]":
        return self._processes[name]

    def signal(self, name: str, number: signal.Signals) -> None:
        self._processes[name].send_signal(number)

    def kill(self, name: str) -> None:
        self._processes[name].kill()
        self._processes[name].wait()

    def exit_of(self, name: str, within_seconds: float = EXIT_SECONDS_MAX) -> int | None:
        """What one that was told to end exits with; None if it does not."""
        try:
            return self._processes[name].wait(within_seconds)
        except subprocess.TimeoutExpired:
            return None


def _close_output(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    process.stdout.close()
