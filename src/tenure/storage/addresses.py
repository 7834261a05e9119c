"""Addresses of stores: `sqlite:PATH` or `postgresql://USER@HOST/DATABASE[?connections=N]`.

Walk: `composition.storage_layer` opens its store by an address, and so do the executors of the pipeline.
"""

import logging
import os
import re
from typing import TYPE_CHECKING, TypeAlias

from tenure.base.env import Env
from tenure.base.errors import InputOutput, InvalidParameter
from tenure.storage.engine import Engine
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine

if TYPE_CHECKING:
    from tenure.storage.postgres.postgres_engine import PostgresEngine

SQLITE_PREFIX = "sqlite:"
POSTGRES_PREFIXES = ("postgresql://", "postgres://")

DEFAULT_LAKE = "tenure-data/lake"
"""The directory of this machine for a store in a server, which has no directory beside it."""

CONNECTIONS, CONNECTIONS_MAX = 16, 500
"""Connections for the reads of one node, made when they are needed: the further away the store, the longer
each is in use. Five nodes fit into the 100 that PostgreSQL allows by default.
"""

_CONNECTIONS = re.compile(r"(?P<first>[?&])connections=(?P<number>[^&]*)(?:&|$)")

_log = logging.getLogger(__name__)

OpenEngine: TypeAlias = "SqliteEngine | PostgresEngine"

_PASSWORD_IN_NETLOC = re.compile(r"(?<=://)([^:@/?]*):.*@")
_PASSWORD_IN_QUERY = re.compile(r"([?&][^=&]*password=)[^&]*", re.IGNORECASE)


def open_engine(address: str, env: Env) -> OpenEngine:
    """Opens the store at `sqlite:PATH` or `postgresql://...`; makes a missing directory."""
    if address.startswith(POSTGRES_PREFIXES):
        # Its driver takes a fifth of a second to import, so it is imported only where it is needed.
        from tenure.storage.postgres.postgres_engine import PostgresEngine

        dsn, connections = _split_connections(address)
        return PostgresEngine(dsn, env, pool_size=connections)
    path = address.removeprefix(SQLITE_PREFIX)
    if not address.startswith(SQLITE_PREFIX) or path in ("", MEMORY):
        raise InvalidParameter(
            f'"{redacted(address)}" is not a store',
            hint="Give sqlite:PATH or postgresql://USER@HOST/DATABASE.",
        )
    _make_directory(os.path.dirname(path))
    return SqliteEngine(path, env)


def _split_connections(address: str) -> tuple[str, int]:
    """Removes `connections=N` from an address: libpq refuses parameters that it does not know."""
    found = _CONNECTIONS.search(address)
    if found is None:
        return address, CONNECTIONS
    text = found["number"]
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= CONNECTIONS_MAX:
        raise InvalidParameter(
            f"connections of a store's address is a number from 1 to {CONNECTIONS_MAX}",
            hint="It is how many reads of one node may wait for the store at a time.",
        )
    before, after = address[: found.start()], address[found.end() :]
    return (before + found["first"] + after if after else before), int(text)


def creation_note(engine: Engine, address: str) -> str:
    """Text for the ready line, and a warning, if the store was created: its path may be mistyped."""
    if not (isinstance(engine, SqliteEngine) and engine.is_new):
        return ""
    _log.warning("there was no store at %s: a new, empty one was created", redacted(address))
    return " created=store"


def default_lake(store: str) -> str:
    """The default address of a store's lake: beside the store's file."""
    if not is_local(store):
        return DEFAULT_LAKE
    return os.path.join(os.path.dirname(store.removeprefix(SQLITE_PREFIX)), "lake")


def is_local(store: str) -> bool:
    """Whether the store is a file: then all its nodes are on one machine."""
    return store.startswith(SQLITE_PREFIX)


def redacted(address: str) -> str:
    """The address as it may be shown: without its password."""
    return _PASSWORD_IN_QUERY.sub(r"\1***", _PASSWORD_IN_NETLOC.sub(r"\1:***@", address))


def _make_directory(path: str) -> None:
    try:
        # Mode 0700: a user who can read the file can read all data, regardless of SQL privileges.
        os.makedirs(path or ".", mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputOutput(
            f'directory "{path}" for the store: {error.strerror}', hint="Name a directory that can be made."
        ) from error
