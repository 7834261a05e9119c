"""Time zones: by name, and between an instant and what the clocks of a zone show.

    Europe/Berlin   IANA's, in any case of letters
    CET, EST        a fixed offset
    UTC+3, +03      POSIX's: three hours west of Greenwich, as PostgreSQL reads them

Clocks skip an hour and repeat another: a time that they skip is read by the offset before, one
they show twice by the offset after, as PostgreSQL reads it.

Walk: `expr.time_text`, `expr.times` and the functions of time use these; `sql` reads SET TIME ZONE
with `zone_named`.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tenure.base.errors import InvalidParameter
from tenure.expr.errors import NotSupported

HOURS_AHEAD = {
    **{"z": 0, "zulu": 0, "utc": 0, "gmt": 0, "ut": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "cest": 2},
    **{"eet": 2, "eest": 3, "msk": 3, "jst": 9, "est": -5, "edt": -4, "cst": -6, "cdt": -5},
    **{"mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8, "hst": -10},
}
_RENAMED = {
    **{"est5edt": "america/new_york", "cst6cdt": "america/chicago", "mst7mdt": "america/denver"},
    **{"pst8pdt": "america/los_angeles", "met": "europe/brussels"},
}
"""Since 2024b these are other names of places; older data has rules of their own for them."""
_POSIX = re.compile(
    r"(?:<[^>]*>|[^<\d,+-][^\d,+-]*|)([+-]?)(\d{1,3})(?::([0-5]?\d)(?::([0-5]?\d))?)?(?P<summer>[^\d,+:-].*)?",
    re.DOTALL,
)
_HOURS_MAX = 24 * 7 - 1


def zone_named(name: str) -> tzinfo:
    """Raises InvalidParameter (22023) if no zone has the name."""
    lowered = name.lower()
    if lowered in HOURS_AHEAD:
        hours = HOURS_AHEAD[lowered]
        return timezone(timedelta(hours=hours)) if hours else UTC
    if known := _known().get(_RENAMED.get(lowered, lowered)):
        return ZoneInfo(known)
    if (posix := _POSIX.fullmatch(name)) and int(posix.group(2)) <= _HOURS_MAX:
        sign, *parts, summer = posix.groups()
        hours, minutes, seconds = (int(each or 0) for each in parts)
        if summer or hours >= 24:
            raise NotSupported("a time zone in POSIX notation that is more than an offset is not supported")
        west = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(west if sign == "-" else -west)
    raise InvalidParameter(f'time zone "{name}" not recognized')


@lru_cache(maxsize=1)
def _known() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def in_zone(value: datetime, zone: tzinfo) -> datetime:
    """An instant as the clocks of a zone show it."""
    try:
        return value.astimezone(zone)
    except OverflowError:
        raise _beyond(value) from None


def local_in(value: datetime, zone: tzinfo) -> datetime:
    """The same without the zone: a timestamp."""
    if zone is UTC:
        return value.replace(tzinfo=None)
    return in_zone(value, zone).replace(tzinfo=None, fold=0)


def from_zone(local: datetime, zone: tzinfo) -> datetime:
    """The instant at which a zone's clocks show this."""
    if zone is UTC:
        return local.replace(tzinfo=UTC)
    try:
        return local.replace(tzinfo=zone, fold=_fold(local, zone)).astimezone(UTC)
    except OverflowError:
        raise _beyond(local) from None


def _fold(local: datetime, zone: tzinfo) -> int:
    first, second = (zone.utcoffset(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    return int(first is not None and second is not None and first > second)


def _beyond(value: datetime) -> NotSupported:
    return NotSupported(f"{value.date()} in this time zone is outside the years 1 to 9999")


def offset_text(local: datetime, *, has_minutes: bool = False) -> str:
    """+02, -05:30, +00:19:32; in ISO 8601 the minutes are always there."""
    offset = local.utcoffset() or timedelta()
    seconds = round(abs(offset).total_seconds())
    text = f"{'-' if offset < timedelta() else '+'}{seconds // 3600:02d}"
    if has_minutes or seconds % 3600:
        text += f":{seconds // 60 % 60:02d}"
    return text + (f":{seconds % 60:02d}" if seconds % 60 else "")
