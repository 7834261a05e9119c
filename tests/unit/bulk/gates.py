"""Tasks that can be held up before a kernel runs, so that tests can do something meanwhile."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tenure.node import Node
from tenure.pipeline.tasks import LABEL, Check, Kernel, OnDone, ProcessTasks

T = TypeVar("T")
R = TypeVar("R")

SECONDS_MAX = 30.0


class Gate(ProcessTasks):
    """Runs tasks here, but waits before those of one kernel until it is opened, or told to stop."""

    def __init__(self, node: Node, kernel: str) -> None:
        super().__init__(node.store.env)
        self._kernel = kernel
        self._reached = threading.Event()
        self._opened = threading.Event()
        self.runs: list[str] = []

    def run(
        self, kernel: Kernel[T, R], tasks: Sequence[T], *, on_done: OnDone, check: Check, label: str = LABEL
    ) -> list[R]:
        name = getattr(kernel, "__name__", "")
        self.runs.append(name)
        if name == self._kernel:
            self._reached.set()
            while not self._opened.wait(0.01):
                check()
        return super().run(kernel, tasks, on_done=on_done, check=check, label=label)

    def wait(self) -> None:
        assert self._reached.wait(SECONDS_MAX), "nothing came to the gate"

    def wait_with(self, other: "Gate") -> None:
        """Waits until something came to one of two gates."""
        for _ in range(int(SECONDS_MAX / 0.02)):
            if self._reached.wait(0.01) or other._reached.wait(0.01):
                return
        raise AssertionError("nothing came to the gates")

    def open(self) -> None:
        self._opened.set()


@contextmanager
def held(node: Node, kernel: str = "sort_split") -> Iterator[Gate]:
    """While this lasts, bulk jobs of the node wait at the gate."""
    gate, former = Gate(node, kernel), node.tasks.process
    node.tasks.process = gate
    try:
        yield gate
    finally:
        gate.open()
        node.tasks.process = former
