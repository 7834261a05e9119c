"""The history log: one JSON line per event, written by a worker, read by the checker.

    intent   before COMMIT: what was read and what is to be written, under a tag
    ack      after it: the commit timestamp
    failed   after it: the SQLSTATE; nothing of it may ever be seen
    unknown  after it: nobody can tell; all of it or nothing
    read     a transaction or snapshot that only read
    beat     a heartbeat and how long it took
    trouble  an error outside of a commit (the store was away); checkpoint: one while checkpointing
    claim    a worker saw something that must not be

A line is one `write` to a file opened for appending: it survives kill -9 of its process, and only
the very last one can be torn. No fsync: the machine itself does not go down in these scenarios.
`m` is CLOCK_MONOTONIC in nanoseconds, one clock for all processes of a machine;
`offset_ms` says how wrong the process's wall clock was.

Walk: `worker` -> `Log.write`; `checker` -> `read_logs`.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class Log:
    def __init__(self, path: Path, *, offset_ms: Callable[[], float] = lambda: 0.0) -> None:
        self._offset_ms = offset_ms
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, kind: str, **fields: object) -> None:
        event = {"e": kind, "m": time.monotonic_ns(), "offset_ms": self._offset_ms(), **fields}
        os.write(self._descriptor, json.dumps(event, separators=(",", ":")).encode() + b"\n")


def read_log(path: Path) -> Iterator[Event]:
    """Yields a log's events; a torn last line is that of a process that was killed writing it."""
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        if not line:
            continue
        try:
            yield json.loads(line)
        except ValueError:
            assert number == len(lines) - 1, f"{path}: line {number + 1} cannot be read"


def read_logs(directory: Path) -> list[tuple[str, list[Event]]]:
    """Every log of a directory under its process's name."""
    return [(path.stem, list(read_log(path))) for path in sorted(directory.glob("*.jsonl"))]
