"""AS OF SYSTEM TIME: finding the clause and the timestamp it means.

    '1763230000000000.0000000007'   a timestamp as cluster_logical_timestamp() gives it
    '-10s', '-1h30m'                that long ago
    '2026-11-15 12:00:00'           a moment, in UTC unless it says otherwise
    $1                              a parameter that holds one of these

AS OF SNAPSHOT name stands in the same place.

A moment that has not come yet is refused (22023).

One moment counts for the whole statement, so the clause stands once, at the statement's top level, where it
cannot be read as a part's own:

    SELECT ... FROM a JOIN b ON ... AS OF SYSTEM TIME '-10s' WHERE ...
    INSERT INTO t SELECT ... FROM t AS OF SYSTEM TIME '-10s'      read then, written now

In parentheses, after one of several tables, in one side of a UNION, or twice, it is refused (0A000).

Walk: `sql.execution.planning` cuts the clause out of the text; `sql.session.past_moments` asks `timestamp_of`
when a statement runs.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

from tenure.base import timestamp
from tenure.base.errors import InvalidParameter, NotSupported, UserError
from tenure.base.timestamp import Timestamp, from_micros
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Datum
from tenure.expr.types.interval import Interval
from tenure.expr.types.type_names import type_of
from tenure.sql.text.parse import CLOSING, OPENING, Token, tokens

_DECIMAL = re.compile(r"\d{10,}(\.\d+)?")
TEXT, _INSTANT, _INTERVAL = (type_of(TypeRef(name)) for name in ("text", "timestamptz", "interval"))


def cut(text: str) -> tuple[str, str]:
    """Takes the clause out of a statement: the rest, blank where it stood, and what it says ("" if none)."""
    lower = text.lower()
    if "system" not in lower and "snapshot" not in lower:
        return text, ""
    found = tokens(text)
    words = [each.text.lower() for each in found]
    places = [at for at in range(len(found) - 2) if _is_clause(words, at)]
    if not places:
        return text, ""
    at = places[0]
    is_snapshot = words[at + 2] == SNAPSHOT
    operand_at = at + (2 if is_snapshot else 4)
    end = at + 4 if is_snapshot else _operand_end(found, operand_at)
    if end > len(found):
        raise InvalidParameter("AS OF SNAPSHOT needs the name of a snapshot")
    _check_place(found, words, places, end)
    data = text.encode()
    start_byte, operand, end_byte = found[at].start, found[operand_at].start, found[end - 1].end
    rest = data[:start_byte] + b" " * (end_byte - start_byte) + data[end_byte:]
    return rest.decode(), data[operand:end_byte].decode()


CLAUSE = ["as", "of", "system", "time"]
SNAPSHOT = "snapshot"
"""AS OF SNAPSHOT name; the operand is "SNAPSHOT name"."""
_JOINING = frozenset((",", "join", "inner", "left", "right", "full", "cross", "natural"))
_SET_OPERATIONS = frozenset(("UNION", "INTERSECT", "EXCEPT"))
"""By the kinds of their tokens: a column may be called "union"."""
_TRANSACTIONS = frozenset(("begin", "start", "set"))
"""Statements in which the clause is an option among others."""

_WHERE = "Write it once, behind the last table of the outermost FROM: it counts for the whole statement."


def _is_clause(words: Sequence[str], at: int) -> bool:
    return words[at : at + 4] == CLAUSE or words[at : at + 3] == ["as", "of", SNAPSHOT]


def snapshot_name(operand: str) -> str | None:
    """The name of a snapshot, if that is what the clause names."""
    first, _, name = operand.strip().partition(" ")
    if first.lower() != SNAPSHOT or not name.strip():
        return None
    name = name.strip()
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _check_place(found: Sequence[Token], words: Sequence[str], places: Sequence[int], end: int) -> None:
    """Raises NotSupported where the clause would seem to count for a part of the statement alone."""
    if len(places) > 1:
        raise NotSupported("AS OF SYSTEM TIME twice in one statement is not supported", hint=_WHERE)
    if words[0] in _TRANSACTIONS:
        return
    depths = _depths(found)
    # COPY (SELECT ...) TO: the parentheses belong to COPY.
    outermost = 1 if words[:2] == ["copy", "("] else 0
    if depths[places[0]] > outermost:
        raise NotSupported(
            "AS OF SYSTEM TIME inside parentheses, as in a subquery or a WITH query, is not supported",
            hint=_WHERE,
        )
    for token, depth in zip(found, depths, strict=True):
        if depth == outermost and token.kind in _SET_OPERATIONS:
            raise NotSupported(
                f"AS OF SYSTEM TIME in a query of a {token.kind} is not supported",
                hint="Write SELECT * FROM (... UNION ...) q AS OF SYSTEM TIME ..., for all of them.",
            )
    following = words[end : end + 2]
    if following and (following[0] in _JOINING or (following[0] == "on" and following[1:] != ["conflict"])):
        raise NotSupported("AS OF SYSTEM TIME for one of several tables is not supported", hint=_WHERE)


def _depths(found: Sequence[Token]) -> list[int]:
    """How many parentheses each token stands in."""
    depth, depths = 0, []
    for token in found:
        depth += (token.kind in OPENING) - (token.kind in CLOSING)
        depths.append(depth)
    return depths


def _operand_end(found: Sequence[Token], at: int) -> int:
    if at >= len(found):
        raise InvalidParameter("AS OF SYSTEM TIME needs a timestamp or an interval")
    return at + 2 if found[at].text in ("-", "+") and at + 1 < len(found) else at + 1


def timestamp_of(operand: str, now_micros: int, values: Sequence[Datum] = ()) -> Timestamp:
    text = operand.strip()
    if text.startswith("$"):
        return moment(_text_of(values[int(text[1:]) - 1]), now_micros)
    if text.startswith("'") and text.endswith("'"):
        text = text[1:-1].replace("''", "'")
    return moment(text, now_micros)


def _text_of(value: Datum) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).isoformat()
    if isinstance(value, Interval):
        return _INTERVAL.render(value)
    if value is None:
        raise InvalidParameter("AS OF SYSTEM TIME cannot be NULL")
    return str(value) if not isinstance(value, Decimal) else format(value, "f")


def moment(text: str, now_micros: int) -> Timestamp:
    """Raises InvalidParameter (22023) if it names no moment of the past."""
    try:
        return _moment(text, now_micros)
    except ValueError as error:
        raise InvalidParameter(f'AS OF SYSTEM TIME: "{text}" is out of range') from error


def is_logical_timestamp(text: str) -> bool:
    """Whether it is what cluster_logical_timestamp() gives."""
    return _DECIMAL.fullmatch(text.strip()) is not None


def _moment(text: str, now_micros: int) -> Timestamp:
    if is_logical_timestamp(text):
        return timestamp.parse(text)
    try:
        span = _INTERVAL.parse(text)
    except UserError:
        span = None
    if isinstance(span, Interval):
        micros = ((span.months * 30) + span.days) * 86_400_000_000 + span.micros
        if micros >= 0:
            raise InvalidParameter(
                f'AS OF SYSTEM TIME: interval "{text}" must be negative', hint="Write '-10s', say."
            )
        return from_micros(now_micros + micros)
    try:
        instant = _INSTANT.parse(text)
    except UserError as error:
        raise InvalidParameter(
            f'AS OF SYSTEM TIME: "{text}" is neither a timestamp nor an interval',
            hint="Give a timestamp, an interval such as '-10s', or what cluster_logical_timestamp() gave.",
        ) from error
    return from_micros(round(instant.timestamp() * 1_000_000))
