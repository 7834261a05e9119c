"""Errors and notices as messages: every field that PostgreSQL's clients know.

    S V severity    C SQLSTATE    M message    D detail    H hint    P position
    s schema    t table    c column    n constraint

An error of our own tree has its fields in attributes. Any other exception is a bug: the client learns that
there was one (XX000) and the log where.

Walk: `pgwire.connection` calls `error_response`; `pgwire.conversation` calls `notice_response` too.
"""

from pathlib import Path

from tenure.base.errors import TenureError
from tenure.expr.types.encodings import UTF8, Encoding
from tenure.pgwire.messages import message, string
from tenure.sql.session.answers import Notice

_MESSAGE_CHARS_MAX = 100_000
"""A message may quote client input; nobody reads more than this."""


def error_response(
    error: BaseException, *, severity: str = "ERROR", offset: int = 0, encoding: Encoding = UTF8
) -> bytes:
    """`offset`: the number of characters in the query string before the statement."""
    if not isinstance(error, TenureError):
        error = TenureError("internal error", hint="The server's log says more.")
    position = error.position
    fields = {
        "S": severity,
        "V": severity,
        "C": error.sqlstate,
        "M": str(error)[:_MESSAGE_CHARS_MAX],
        "D": error.detail,
        "W": error.where,
        "H": error.hint,
        "P": str(position + offset) if position else "",
        "s": _named(error, "schema"),
        "t": _named(error, "table"),
        "c": _named(error, "column"),
        "n": _named(error, "constraint"),
        **_source(error),
    }
    return _fields(b"E", fields, encoding)


def notice_response(notice: Notice, encoding: Encoding = UTF8) -> bytes:
    fields = {
        "S": notice.severity,
        "V": notice.severity,
        "C": notice.sqlstate,
        "M": notice.message[:_MESSAGE_CHARS_MAX],
        "D": notice.detail,
        "H": notice.hint,
    }
    return _fields(b"N", fields, encoding)


def _source(error: TenureError) -> dict[str, str]:
    """Where it was raised: file, line and routine. A class for an error of PostgreSQL that clients recognize
    by its routine has that routine's name.
    """
    trace = error.__traceback__
    if trace is None:
        return {"R": _named(error, "routine")}
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return {
        "F": Path(code.co_filename).name,
        "L": str(trace.tb_lineno),
        "R": _named(error, "routine") or code.co_name,
    }


def _named(error: TenureError, field: str) -> str:
    name = getattr(error, field, "")
    return name if isinstance(name, str) else ""


def _fields(kind: bytes, fields: dict[str, str], encoding: Encoding) -> bytes:
    filled = (code.encode() + string(text, encoding) for code, text in fields.items() if text)
    return message(kind, b"".join(filled) + b"\0")
