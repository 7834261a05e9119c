"""The start-up probe: does this database keep the rules that the section rests on?

* Commits are on disk: fsync and synchronous_commit are on.
* Isolation is READ COMMITTED, and a statement that follows a lock, in one function, sees what the
  lock waited for. Tried out with two connections:

      A: BEGIN; lock the row
      B:                        SELECT probe_read(...)     waits for the row
      A: change the value; COMMIT
      B:                        must answer the new value

Databases that speak PostgreSQL's protocol and fail this would lose updates silently.

A node needs no more than a schema of its own. The log warns of an account with more rights: an attacker who
takes over the node would take over the database server too.

Walk: `storage.postgres.postgres_engine` calls `probe` when it opens the store.
"""

import logging
import select

import psycopg

from tenure.base.env import Env
from tenure.base.errors import UnfitEngine
from tenure.storage.postgres.session import Connector, StoreConnection

POLL_SECONDS = 0.001
POLLS_MAX = 3000
"""About three seconds; on a healthy database B is seen waiting within a few milliseconds."""

_OLD, _NEW = 1, 2

_ATTRIBUTES = """
SELECT a.name FROM pg_roles r, unnest(
    ARRAY['SUPERUSER', 'CREATEROLE', 'CREATEDB', 'REPLICATION', 'BYPASSRLS'],
    ARRAY[rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls]
) AS a(name, is_set) WHERE r.rolname = current_user AND a.is_set
"""
_ROLES = """
SELECT rolname::text FROM pg_roles
WHERE rolname IN (
    'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_read_all_data',
    'pg_write_all_data'
) AND pg_has_role(current_user, oid, 'MEMBER')
ORDER BY rolname
"""

_log = logging.getLogger(__name__)


def probe(connector: Connector, env: Env) -> None:
    """Raises UnfitEngine, naming the rule, if the database is not fit to be a store."""
    first = connector.connect()
    second = connector.connect()
    try:
        with connector.translating():
            _check_settings(first)
            _check_section(first, second, env)
            excess = excessive_rights(first)
    finally:
        first.close()
        second.close()

    if excess:
        _log.warning(
            "the store's account may do more on the database server than a node needs: %s", ", ".join(excess)
        )


def excessive_rights(connection: StoreConnection) -> list[str]:
    """A superuser is a member of every role, so nothing else is listed."""
    attributes = [name for (name,) in connection.execute(_ATTRIBUTES)]
    if "SUPERUSER" in attributes:
        return ["SUPERUSER"]
    return attributes + [name for (name,) in connection.execute(_ROLES)]


def _check_settings(connection: StoreConnection) -> None:
    for name, wanted in (
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("transaction_isolation", "read committed"),
    ):
        row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
        found = row[0] if row else None
        if found != wanted:
            raise UnfitEngine(
                f'the database has {name} set to "{found}": a store needs "{wanted}"',
                hint=f"Set {name} = '{wanted}' in postgresql.conf and restart the database.",
            )


def _check_section(first: StoreConnection, second: StoreConnection, env: Env) -> None:
    probe_id = env.rng.randbytes(16)
    insert = "INSERT INTO probe (id, part, value) VALUES (%(id)s, 'lock', %(v)s), (%(id)s, 'value', %(v)s)"
    first.execute(insert, {"id": probe_id, "v": _OLD})
    try:
        with first.transaction():
            lock = "SELECT 1 FROM probe WHERE id = %s AND part = 'lock' FOR UPDATE"
            first.execute(lock, [probe_id])
            question = b"SELECT probe_read('\\x" + probe_id.hex().encode() + b"')"
            second.pgconn.send_query(question)
            _await_blocked(first, second, env)
            change = "UPDATE probe SET value = %s WHERE id = %s AND part = 'value'"
            first.execute(change, [_NEW, probe_id])
        if _answer(second) != _NEW:
            raise UnfitEngine(
                "the database fails the rule that a statement after a lock sees what the lock waited for",
                hint="Use PostgreSQL itself, or a database that keeps this rule of READ COMMITTED.",
            )
    finally:
        first.execute("DELETE FROM probe WHERE id = %s", [probe_id])


def _await_blocked(first: StoreConnection, second: StoreConnection, env: Env) -> None:
    query = "SELECT pg_backend_pid() = ANY (pg_blocking_pids(%s::int))"
    for _ in range(POLLS_MAX):
        row = first.execute(query, [second.info.backend_pid]).fetchone()
        if row and row[0]:
            return
        env.sleep(POLL_SECONDS)
    raise UnfitEngine(
        "the database fails the rule that SELECT FOR UPDATE waits for another transaction's row lock",
        hint="Use PostgreSQL itself, or a database that keeps this rule.",
    )


def _answer(connection: StoreConnection) -> int | None:
    # Not by libpq: its wait holds the GIL, and with it all threads of the process.
    while connection.pgconn.is_busy():
        select.select([connection.pgconn.socket], [], [])
        connection.pgconn.consume_input()
    result = connection.pgconn.get_result()
    if result is None or result.ntuples != 1:
        raise psycopg.OperationalError("the probe got no answer")
    value = result.get_value(0, 0)
    while connection.pgconn.get_result() is not None:
        pass
    return None if value is None else int(value)
