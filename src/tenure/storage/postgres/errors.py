"""The meaning of PostgreSQL's errors for a store: one table by SQLSTATE.

The one case that matters is a commit without an answer: it may have landed or may still land. The caller of
`translate` says so (`awaiting`), and the error becomes Disconnected. An error that the server sent on a
connection that stays open means that the statement was rolled back: nothing was changed.

Messages of libpq and the server name hosts, users and databases, so they are private to the operator.

Walk: `postgres.session.Connector.translating` calls `translate` for every error of psycopg.
"""

import re

import psycopg

from tenure.base.errors import (
    AccessDenied,
    CommitTooLarge,
    CorruptData,
    Disconnected,
    DiskFull,
    InputOutput,
    RetryError,
    StoreError,
    TenureError,
    Unavailable,
)

FATAL = ("FATAL", "PANIC")
"""Severities after which the server ends the connection."""

_BY_STATE: tuple[tuple[str, type[TenureError], str], ...] = (
    ("28", AccessDenied, "Check user and password of the connection string, and pg_hba.conf."),
    ("42501", AccessDenied, "Grant the store's user the rights on its schema."),
    ("53100", DiskFull, "Free space on the database's disk."),
    ("53", Unavailable, "The database is short of memory or connections (max_connections)."),
    ("57014", Unavailable, "The database took too long; look for what slows it down."),
    ("55P03", Unavailable, "Commits queue behind a slow one; look for what slows the database down."),
    ("25006", Unavailable, "The database is a standby or read-only: connect to the primary."),
    ("57P", Unavailable, ""),
    ("08", Unavailable, ""),
    ("3D000", Unavailable, "Create the database, or correct its name in the connection string."),
    ("40", RetryError, ""),
    ("54000", CommitTooLarge, "A key is too long for PostgreSQL's index (about 2700 bytes)."),
    ("58030", InputOutput, ""),
    ("XX001", CorruptData, ""),
    ("XX002", CorruptData, "An index is damaged: REINDEX the store's tables."),
)

_DENIED = re.compile(r"authentication failed|no password supplied|pg_hba\.conf|role .* does not exist")


def translate(error: psycopg.Error, text: str, *, is_broken: bool, awaiting: bool) -> TenureError:
    state = error.sqlstate
    if state is None:
        if _DENIED.search(text):  # libpq has no SQLSTATE for a failed connection attempt
            return AccessDenied("the store refused the login", hint=_BY_STATE[0][2], private=text)
        is_broken = is_broken or isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    is_broken = is_broken or error.diag.severity_nonlocalized in FATAL
    if is_broken and awaiting:
        return Disconnected("the connection to the store broke while a commit was on its way", private=text)
    for prefix, kind, hint in _BY_STATE:
        if state is not None and state.startswith(prefix):
            return kind(f"the store answers with an error ({state})", hint=hint, private=text)
    if is_broken:
        return Unavailable("the store cannot be reached", private=text)
    return StoreError(f"the store answers with an error ({state})", private=text)
