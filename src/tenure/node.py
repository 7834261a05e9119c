"""A node: one process that builds every part by hand, runs its loops, and drains.

    start    engine -> store -> loops -> ready
    drain    loops, newest first -> store -> engine

Whatever was built is taken down in reverse order, also when a later part fails to start. A store
that cannot be reached at the start ends the start with an error; one that goes away later does
not end the node: its loops log what fails and go on once the cause is gone.

Walk: `cli` calls `Node`, then `stop`; this module calls every layer's constructor and nothing else
does.
"""

import logging
import os
import re
from collections.abc import Callable
from contextlib import ExitStack

from tenure.base.clock import check_offset
from tenure.base.env import Env
from tenure.base.errors import InputOutput, InvalidParameter, TenureError
from tenure.base.loops import Loop, Loops
from tenure.base.settings import DEFINITIONS, MAX_OFFSET, Settings
from tenure.kv.store import Store
from tenure.storage.postgres import PostgresEngine
from tenure.storage.sqlite import MEMORY, SqliteEngine

CHECKPOINT_SECONDS = 0.2
"""Short enough that the WAL stays small under full load, long enough to cost nothing when idle."""

CLOCK_CHECK_SECONDS = 5.0
"""Commits check the offset themselves; this says it in the log before one is refused."""

SQLITE_PREFIX = "sqlite:"
POSTGRES_PREFIXES = ("postgresql://", "postgres://")

_log = logging.getLogger(__name__)
_PASSWORD_IN_NETLOC = re.compile(r"(?<=://)([^:@/?]*):.*@")
_PASSWORD_IN_QUERY = re.compile(r"([?&][^=&]*password=)[^&]*", re.IGNORECASE)


class Node:
    """Starts when it is made; `stop` drains it."""

    def __init__(self, address: str, env: Env) -> None:
        settings = Settings(DEFINITIONS)
        with ExitStack() as undo:
            engine = open_engine(address, env)
            undo.callback(_close, "engine", engine.close)
            self.store = Store(engine, env, settings=settings)
            undo.callback(_close, "store", self.store.close)
            loops = Loops(_loops(engine, env, settings))
            undo.callback(loops.stop)
            loops.start()
            self._undo = undo.pop_all()

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


def _loops(engine: SqliteEngine | PostgresEngine, env: Env, settings: Settings) -> list[Loop]:
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
