"""The file of a SQLite store: how it is opened, recognized and laid out.

Several processes may open a new file at the same moment. Each inspects it and switches it to WAL, which is
permanent. The first one to get into the section creates the tables. A file of the version before gets what it
lacks in the same way; SQLite keeps an index right in that version's processes too.

Walk: `SqliteEngine` -> `inspect`, `connect`, `lay_out`; `SqliteEngine.copy_to` -> `copy_file`.
"""

import os
from typing import Any

import apsw

from tenure.base.env import Env
from tenure.base.errors import CorruptData, NewerFormat
from tenure.storage.engine import FORMAT
from tenure.storage.sqlite.head_clock import Execute

MEMORY = ":memory:"

APPLICATION_ID = 0x54454E55
"""Marks the file as ours in SQLite's header ("TENU")."""

BUSY_MILLISECONDS = 10_000
"""Our own writers queue at the turnstile; this timeout is for other programs, such as a sqlite3 shell."""

SWITCH_SECONDS = 0.005
"""The pause between two attempts to switch a new file to WAL."""

CACHE_KIB = 8_192
"""Page cache per connection; a node has about ten of them."""

WAL_PAGES_MAX = 16_384
"""64 MiB: a commit checkpoints by itself at this size, if no checkpointer has kept up."""

SCHEMA = """
CREATE TABLE clock (at INTEGER NOT NULL);
INSERT INTO clock VALUES (0);
CREATE TABLE live (key BLOB PRIMARY KEY, at INTEGER NOT NULL, value BLOB) WITHOUT ROWID;
CREATE INDEX live_changes ON live (substr(key, 1, 10), at);
CREATE TABLE past (
    key BLOB NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL, value BLOB,
    PRIMARY KEY (key, until)
) WITHOUT ROWID;
CREATE INDEX past_changes ON past (substr(key, 1, 10), at);
CREATE TRIGGER live_to_past AFTER UPDATE ON live BEGIN
    INSERT INTO past VALUES (OLD.key, OLD.at, NEW.at, OLD.value);
END;
CREATE TABLE lane (id BLOB PRIMARY KEY, seq INTEGER NOT NULL, outcomes BLOB) WITHOUT ROWID;
"""

ADDITIONS = """
CREATE INDEX IF NOT EXISTS live_tombstones ON live (key) WHERE value IS NULL;
CREATE TABLE IF NOT EXISTS head_clock (
    head BLOB PRIMARY KEY, at INTEGER NOT NULL, written_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS head_clock_at ON head_clock (at);
"""
"""What files of the version before lack."""


def connect(path: str, env: Env, vfs: str | None, *, query_only: bool) -> apsw.Connection:
    connection = apsw.Connection(path, vfs=vfs)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)
    connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)  # no other file can be attached to this connection
    connection.convert_binding = _as_array
    if path != MEMORY:
        _switch_to_wal(connection, env)
    connection.pragma("synchronous", "full")
    connection.pragma("cache_size", -CACHE_KIB)
    connection.pragma("wal_autocheckpoint", WAL_PAGES_MAX)
    connection.pragma("query_only", query_only)
    return connection


def _switch_to_wal(connection: apsw.Connection, env: Env) -> None:
    """If several processes switch at the same moment, all but one are told at once that the file is busy."""
    until = env.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if env.monotonic() >= until:
                raise
            env.sleep(SWITCH_SECONDS)


def _as_array(cursor: apsw.Cursor, number: int, value: Any) -> Any:
    """Binds many keys as one value, which SQLite cannot do by itself."""
    return apsw.carray(value)


def inspect(path: str, vfs: str | None) -> None:
    """Refuses a file that is not a store before anything in it is changed, its journal mode included."""
    connection = apsw.Connection(path, vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.execute("BEGIN")  # one snapshot: another process may be creating the tables right now
        _is_empty(lambda statement, values: connection.execute(statement, values).fetchall(), path)
    finally:
        connection.close()


def lay_out(execute: Execute, path: str) -> None:
    """Creates the tables that are missing; inside the section, as two processes may come at once."""
    if _is_empty(execute, path):
        execute(SCHEMA, ())
        execute(f"PRAGMA application_id = {APPLICATION_ID:d}", ())
        execute(f"PRAGMA user_version = {FORMAT:d}", ())
    execute(ADDITIONS, ())


def copy_file(source: apsw.Connection, path: str) -> None:
    """Copies a store with its WAL, as of one moment, to a file that does not exist yet.

    In one step: between two, commits of other processes would make SQLite begin again, for ever.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    target = apsw.Connection(path)
    try:
        target.set_busy_timeout(BUSY_MILLISECONDS)
        target.pragma("synchronous", "full")
        with target.backup("main", source, "main") as backup:
            backup.step(-1)
    finally:
        target.close()


def _is_empty(execute: Execute, path: str) -> bool:
    """Whether the file is new; raises if it is neither that nor a store this version can read."""
    ((application_id,),) = execute("PRAGMA application_id", ())
    ((file_format,),) = execute("PRAGMA user_version", ())
    ((tables,),) = execute("SELECT count(*) FROM sqlite_schema", ())
    if application_id == 0 and tables == 0:
        return True
    if application_id != APPLICATION_ID:
        raise CorruptData("the store's file is of SQLite, but not a Tenure store", private=path)
    if file_format > FORMAT:
        raise NewerFormat(
            f"the store's file has format {file_format}; this version of Tenure reads up to {FORMAT}",
            hint="Start it with the newer version that wrote it.",
            private=path,
        )
    return False
