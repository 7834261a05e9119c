"""A node: one process that builds every part by hand, runs its loops, and drains.

    start    engine -> store -> upkeep -> session -> jobs -> ready
    drain    jobs -> session -> upkeep -> store -> engine

Whatever was built is taken down in reverse order, also when a later part fails to start. A store
that cannot be reached at the start ends the start with an error; one that goes away later does
not end the node: its loops log what fails and go on once the cause is gone.

Walk: `cli` calls `Node`, then `stop`; this module calls every layer's constructor and nothing else
does.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

from tenure.base.clock import check_offset
from tenure.base.env import Env
from tenure.base.errors import InputOutput, InvalidParameter, TenureError
from tenure.base.loops import Loop, Loops
from tenure.base.settings import (
    DEFINITIONS,
    JOBS_ADOPT_INTERVAL,
    LIVENESS_HEARTBEAT,
    LIVENESS_TTL,
    MAX_OFFSET,
    Settings,
)
from tenure.cluster.deaths import Deaths
from tenure.cluster.jobs import Jobs
from tenure.cluster.liveness import Liveness, Session
from tenure.cluster.runner import Kind, Runner
from tenure.cluster.sessions import Sessions
from tenure.kv.store import Store
from tenure.storage.postgres import PostgresEngine
from tenure.storage.sqlite import MEMORY, SqliteEngine

CHECKPOINT_SECONDS = 0.2
"""Short enough that the WAL stays small under full load, long enough to cost nothing when idle."""

CLOCK_CHECK_SECONDS = 5.0
"""Commits check the offset themselves; this says it in the log before one is refused."""

DRAIN_SECONDS = 30.0
"""How long a drain waits for jobs that do not stop; then the session goes, and their fence with it."""

VERSION = 1
"""The version of this program's part in a cluster; nodes one apart can run together."""

SQLITE_PREFIX = "sqlite:"
POSTGRES_PREFIXES = ("postgresql://", "postgres://")

_log = logging.getLogger(__name__)
_PASSWORD_IN_NETLOC = re.compile(r"(?<=://)([^:@/?]*):.*@")
_PASSWORD_IN_QUERY = re.compile(r"([?&][^=&]*password=)[^&]*", re.IGNORECASE)


class Node:
    """Starts when it is made; `stop` drains it.

    `kinds` are the kinds of jobs it can run, `has` what it has that some of them need.
    """

    def __init__(
        self,
        address: str,
        env: Env,
        *,
        settings: Settings | None = None,
        kinds: Mapping[str, Kind] | None = None,
        has: Iterable[str] = (),
    ) -> None:
        self._env = env
        self._settings = settings or Settings(DEFINITIONS)
        with ExitStack() as undo:
            engine = open_engine(address, env)
            undo.callback(_close, "engine", engine.close)
            self.store = Store(engine, env, settings=self._settings)
            undo.callback(_close, "store", self.store.close)
            self._run_loops(undo, _upkeep(engine, env, self._settings))
            self._start_session(undo, kinds or {}, has)
            self._start_jobs(undo)
            self._undo = undo.pop_all()

    def _start_session(self, undo: ExitStack, kinds: Mapping[str, Kind], has: Iterable[str]) -> None:
        sessions = Sessions(self.store.keyspace)
        self.liveness = Liveness(
            self.store, sessions, lambda: self._settings, address="", version=VERSION, on_lost=self._lost
        )
        self.liveness.step()
        undo.callback(_close, "session", self.liveness.release)
        self.deaths = Deaths(self.store, sessions)
        undo.callback(self.deaths.close)
        self.jobs = Jobs(self.store.keyspace, sessions, self.store.clock)
        # Made before the heartbeat runs, which tells it when the session is lost.
        self.runner = Runner(
            self.store, self.liveness, self.deaths, self.jobs, kinds, lambda: self._settings, has=has
        )
        ttl_seconds = self._settings[LIVENESS_TTL]
        heartbeat = Loop(
            "heartbeat",
            self.liveness.step,
            self._env,
            interval_seconds=self._settings[LIVENESS_HEARTBEAT],
            backoff_max_seconds=ttl_seconds / 8,
            log=_log,
        )
        deaths = Loop("deaths", self.deaths.follow, self._env, interval_seconds=ttl_seconds, log=_log)
        reaper = Loop("reaper", self.deaths.reap, self._env, interval_seconds=ttl_seconds, log=_log)
        self._run_loops(undo, [heartbeat, deaths, reaper])

    def _start_jobs(self, undo: ExitStack) -> None:
        interval_seconds = self._settings[JOBS_ADOPT_INTERVAL]
        adopter = Loop(
            "jobs",
            self.runner.step,
            self._env,
            interval_seconds=interval_seconds,
            backoff_max_seconds=self._settings[LIVENESS_TTL] / 8,
            log=_log,
        )
        adopter.start()
        undo.callback(_stop_jobs, self.runner, adopter)
        undo.callback(_close, "session", self.liveness.drain)

    def _run_loops(self, undo: ExitStack, members: Sequence[Loop]) -> None:
        loops = Loops(members)
        undo.callback(loops.stop)
        loops.start()

    def _lost(self, session: Session) -> None:
        self.runner.lost(session)

    def stop(self) -> None:
        self._undo.close()


def open_engine(address: str, env: Env) -> SqliteEngine | PostgresEngine:
    """Opens what `sqlite:PATH` or `postgresql://...` names; makes a missing directory."""
    if address.startswith(POSTGRES_PREFIXES):
        return PostgresEngine(address, env)
    path = address.removeprefix(SQLITE_PREFIX)
    if not address.startswith(SQLITE_PREFIX) or path in ("", MEMORY):
        raise InvalidParameter(
            f'"{redacted(address)}" is not a store',
            hint="Give sqlite:PATH or postgresql://USER@HOST/DATABASE.",
        )
    _make_directory(os.path.dirname(path))
    return SqliteEngine(path, env)


def redacted(address: str) -> str:
    """The address as it may be shown: without its password."""
    return _PASSWORD_IN_QUERY.sub(r"\1***", _PASSWORD_IN_NETLOC.sub(r"\1:***@", address))


def _make_directory(path: str) -> None:
    try:
        # Mode 0700: whoever may read the file may read all data, whatever SQL would say.
        os.makedirs(path or ".", mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputOutput(
            f'directory "{path}" for the store: {error.strerror}', hint="Name a directory that can be made."
        ) from error


def _stop_jobs(runner: Runner, adopter: Loop) -> None:
    # The adopter first: a step that was under way may have started a run after the drain looked.
    adopter.request_stop()
    runner.wake()
    adopter.stop()
    if not runner.drain(timeout=DRAIN_SECONDS):
        _log.warning("some jobs did not stop within %.0f s; their claims end with the session", DRAIN_SECONDS)


def _upkeep(engine: SqliteEngine | PostgresEngine, env: Env, settings: Settings) -> list[Loop]:
    max_offset_micros = round(settings[MAX_OFFSET] * 1_000_000)

    def check_clock() -> None:
        check_offset(
            node_micros=env.wall_micros(),
            engine_micros=engine.wall_micros(),
            max_offset_micros=max_offset_micros,
        )

    loops = [Loop("clock check", check_clock, env, interval_seconds=CLOCK_CHECK_SECONDS, log=_log)]
    if isinstance(engine, SqliteEngine):
        step = engine.checkpoint
        loops.append(Loop("checkpointer", step, env, interval_seconds=CHECKPOINT_SECONDS, log=_log))
    return loops


def _close(name: str, close: Callable[[], None]) -> None:
    """A store that is away must not keep a node from stopping."""
    try:
        close()
    except TenureError as error:
        _log.warning("closing the %s: %s", name, error)
