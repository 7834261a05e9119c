"""Values of TimeZone and client_encoding, as PostgreSQL reads and shows them.

    SET TIME ZONE 'europe/berlin'              Europe/Berlin
    SET TIME ZONE 2, '+02', INTERVAL '2:00'    <+02>-02: hours east of Greenwich
    SET TIME ZONE 'utc+2'                      UTC+2: POSIX's, west of it
    SET client_encoding = 'utf-8'              UTF8: only letters and digits of a name count

Walk: `sql.session.variables` checks what SET gives with these; `sql.execution.portal_runs` calls
`check_text`.
"""

import re
from collections.abc import Sequence

from tenure.base.errors import InvalidParameter, NotSupported
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Datum
from tenure.expr.types.encodings import Encoding, encoding_named
from tenure.expr.types.interval import MICROS_PER_SECOND, Interval
from tenure.expr.types.type_names import type_of
from tenure.expr.types.zones import offset_zone, spelling_of, zone_of
from tenure.sql.session.answers import ResultColumn

_HOURS = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INTERVAL = re.compile(r"interval\s*'([^']*)'", re.IGNORECASE)
HOURS_END = 168
"""PostgreSQL's zones are less than a week from UTC; those of a day and more are refused here."""


def client_encoding(text: str) -> str:
    """PostgreSQL's name of an encoding that all of a client's text can be converted from and to."""
    try:
        encoding = encoding_named(text)
    except InvalidParameter as error:
        raise ValueError(text) from error
    if not encoding.is_converted:
        raise encoding.refusal()
    return encoding.name


def check_text(encoding: Encoding, columns: Sequence[ResultColumn], rows: Sequence[Sequence[Datum]]) -> None:
    """Raises 22P05 for a text that the client cannot be sent, while nothing is committed yet."""
    if not encoding.is_utf8:
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                if value is not None:
                    encoding.encode(column.type.render(value))


def time_zone(text: str) -> str:
    if text.lower() in ("default", "local"):
        return "UTC"
    if text.upper() in ("UTC", "GMT"):
        return text.upper()
    if spelling := spelling_of(text):
        return spelling
    if interval := _INTERVAL.fullmatch(text):
        return _offset(_interval_hours(interval[1]))
    if _HOURS.fullmatch(text):
        return _offset(float(text))
    if zone_of(text) is not None:
        return text.upper()
    raise ValueError(text)


def _interval_hours(text: str) -> float:
    value = type_of(TypeRef("interval")).parse(text)
    assert isinstance(value, Interval)
    if value.months or value.days:
        raise ValueError(text)
    return value.micros / MICROS_PER_SECOND / 3600


def _offset(hours: float) -> str:
    if not -HOURS_END < hours < HOURS_END:
        raise ValueError(hours)
    if not -24 < hours < 24:
        raise NotSupported("a time zone a day or more from UTC is not supported")
    return offset_zone(int(hours * 3600))
