"""Polls for the commits of other processes to a SQLite store.

    `data_version` has changed ──► lanes of others have moved? ──► which heads changed ──► wakes subscribers
    a writer of this process has waited for long ──► the log says which process has the section

This process's own commits wake subscribers directly. A lost signal is harmless, so an error of SQLite is
ignored here: reads and commits report it.

Walk: `storage.sqlite.sqlite_engine` spawns `run` with the first subscription; it calls `storage.signals` and
`storage.sqlite.section_holder`.
"""

import logging
from collections.abc import Collection, Set

import apsw

from tenure.base.env import Env, Event
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.storage.signals import Signals
from tenure.storage.sqlite import reads as sqlite_reads
from tenure.storage.sqlite.head_clock import Execute, moved_heads
from tenure.storage.sqlite.section_holder import find_holder
from tenure.storage.sqlite.section_turn import SectionTurn

POLL_SECONDS = 0.004
"""The poll interval: half of the 8 ms that another process's commit may take to be noticed."""

QUICK_POLL_SECONDS, QUICK_POLLS = 0.001, 50
"""The shorter interval, and the number of polls, after a commit with subscribers here: a node that changes
the schema and the nodes that take the change in wait for each other several times.
"""

WAIT_SECONDS_TOLD, TOLD_EVERY_SECONDS = 2.0, 10.0
"""After so long a wait for the section the log names its holder, and repeats that at this interval."""

_LANES = "SELECT id, seq FROM lane"

_log = logging.getLogger(__name__)


class SqlitePoller:
    """`lanes` are those of this process, `turns` those of its writers; both grow."""

    def __init__(
        self,
        path: str,
        env: Env,
        execute: Execute,
        signals: Signals,
        *,
        lanes: Set[bytes],
        turns: list[SectionTurn],
    ) -> None:
        self._path = path
        self._env = env
        self._execute = execute
        self._signals = signals
        self._lanes = lanes
        self._turns = turns
        self._told_at: float | None = None
        """When the log last named the holder of the section."""

    def run(self, closing: Event) -> None:
        execute = self._execute
        version, lanes, polled_at, quick_left = None, None, ZERO_AT, 0
        while not closing.wait(QUICK_POLL_SECONDS if quick_left else POLL_SECONDS):
            quick_left = max(0, quick_left - 1)
            self._tell_waits()
            try:
                ((now,),) = execute("PRAGMA data_version", ())
                if now == version:
                    continue
                # In this order: a commit up to this clock is seen in what follows, and by subscribers that
                # come later.
                clock_at = sqlite_reads.clock_at(execute)
                of_others = [row for row in execute(_LANES, ()) if row[0] not in self._lanes]
                heads = self._moved(polled_at) if of_others != lanes else None
            except apsw.Error:
                continue
            version, lanes, polled_at = now, of_others, clock_at
            if heads is not None:
                self._signals.wake(heads)
            if heads:
                quick_left = QUICK_POLLS

    def _moved(self, since_at: Timestamp) -> Collection[bytes]:
        """The heads that have moved since a time: by the head clock, else by a look at what is subscribed."""
        moved = moved_heads(self._execute, since_at).heads
        if moved is None:
            return sqlite_reads.changed(self._execute, self._signals.bounds(), since_at)
        return moved

    def _tell_waits(self) -> None:
        since = [at for each in self._turns if (at := each.waits_since) is not None]
        if not since:
            return
        now = self._env.monotonic()
        waited_seconds = now - min(since)
        is_news = self._told_at is None or now >= self._told_at + TOLD_EVERY_SECONDS
        if waited_seconds >= WAIT_SECONDS_TOLD and is_news:
            self._told_at = now
            _log.warning(
                "commits have waited for %.0f s for the section of %s; it is held by %s",
                *(waited_seconds, self._path, find_holder(self._path) or "a process that is not known"),
            )
