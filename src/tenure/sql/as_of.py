"""AS OF SYSTEM TIME: which moment is meant.

    '1763230000000000.0000000007'   a timestamp as cluster_logical_timestamp() gives it
    '-10s', '-1h30m'                that long ago
    '2026-11-15 12:00:00'           a moment, in UTC unless it says otherwise
    $1                              a parameter that holds one of these

A moment that has not come yet is refused (22023).

Walk: `sql.planning` cuts the clause out of the text; `statements` ask `timestamp_of` when they run.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from tenure.base import timestamp
from tenure.base.errors import InvalidParameter, UserError
from tenure.base.timestamp import Timestamp, from_micros
from tenure.catalog.descriptors import TypeRef
from tenure.expr.datatype import Datum
from tenure.expr.interval import Interval
from tenure.expr.types import type_of
from tenure.sql.parse import Token, tokens

if TYPE_CHECKING:
    from tenure.sql.session import Session

_DECIMAL = re.compile(r"\d{10,}(\.\d+)?")
TEXT, _INSTANT, _INTERVAL = (type_of(TypeRef(name)) for name in ("text", "timestamptz", "interval"))


def cut(text: str) -> tuple[str, str]:
    """Takes the clause out of a statement: the rest, blank where it stood, and what it says ("" if none)."""
    if "system" not in text.lower():
        return text, ""
    found = tokens(text)
    for at in range(len(found) - 3):
        if [each.text.lower() for each in found[at : at + 4]] == ["as", "of", "system", "time"]:
            end = _operand_end(found, at + 4)
            data = text.encode()
            start_byte, operand, end_byte = found[at].start, found[at + 4].start, found[end - 1].end
            rest = data[:start_byte] + b" " * (end_byte - start_byte) + data[end_byte:]
            return rest.decode(), data[operand:end_byte].decode()
    return text, ""


def _operand_end(found: Sequence[Token], at: int) -> int:
    if at >= len(found):
        raise InvalidParameter("AS OF SYSTEM TIME needs a timestamp or an interval")
    return at + 2 if found[at].text in ("-", "+") and at + 1 < len(found) else at + 1


def timestamp_of(session: "Session", operand: str, values: Sequence[Datum] = ()) -> Timestamp:
    text = operand.strip()
    if text.startswith("$"):
        return moment(_text_of(values[int(text[1:]) - 1]), session.parts.env.wall_micros())
    if text.startswith("'") and text.endswith("'"):
        text = text[1:-1].replace("''", "'")
    return moment(text, session.parts.env.wall_micros())


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
    if _DECIMAL.fullmatch(text.strip()):
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
