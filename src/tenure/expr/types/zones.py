"""Time zones: by name, and conversion between an instant and a zone's local time.

    Europe/Berlin   IANA's, in any case of letters
    CET, EST        a fixed offset
    UTC+3, +03      POSIX's: three hours west of Greenwich, as PostgreSQL reads them
    <+03>-03        the same for SET TIME ZONE 3: three hours east

Clocks skip an hour and repeat another: a time that they skip is read by the offset before, one
they show twice by the offset after, as PostgreSQL reads it.

Walk: `expr.types.time_text` and `expr.types.time_types` use these; the functions of time call `zone_named`;
`sql.session.client_facts` reads SET TIME ZONE with `spelling_of`.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tenure.base.errors import InvalidParameter, NotSupported
from tenure.expr.types.zone_words import PLACES, STANDARD, SUMMER

_RENAMED = {
    **{"est5edt": "america/new_york", "cst6cdt": "america/chicago", "mst7mdt": "america/denver"},
    **{"pst8pdt": "america/los_angeles", "met": "europe/brussels"},
}
"""Since 2024b these are other names of places; older data has rules of their own for them."""
_POSIX = re.compile(
    r"(?P<name><[^>]*>|[^<\d,+-][^\d,+-]*|)([+-]?)0*(\d{1,3})(?::0*([0-5]?\d)(?::0*([0-5]?\d|60))?)?(?P<summer>[^\d,+:-].*)?",
    re.DOTALL | re.ASCII,
)
_HOURS_MAX = 24 * 7 - 1

NAME_CHARACTERS_MAX = 255
"""PostgreSQL looks at no more of a zone's name, and shows no more of it in errors."""


def zone_named(name: str, at: tzinfo = UTC) -> tzinfo:
    """Raises InvalidParameter (22023) if no zone has the name.

    An abbreviation with another meaning in the session's zone `at` is refused: stored values must not depend
    on the session that made them.
    """
    name = name[:NAME_CHARACTERS_MAX]
    word = name.lower()
    if at is not UTC and word in _spoken(at) and abbreviated(word, at) != abbreviated(word):
        raise NotSupported(f'"{name}" as a time zone is not supported in a session that uses it otherwise')
    if found := abbreviated(word) or zone_of(name):
        return found
    raise InvalidParameter(f'time zone "{name}" not recognized')


def abbreviated(word: str, at: tzinfo = UTC) -> tzinfo | None:
    """The zone of an abbreviation in small letters; the place `at` may give it its own meaning."""
    if at is not UTC and (uses := _spoken(at).get(word)):
        return _ahead(uses[0][1]) if len({seconds for _, seconds in uses}) == 1 else at
    seconds = STANDARD.get(word, SUMMER.get(word))
    if seconds is not None:
        return _ahead(seconds)
    return ZoneInfo(PLACES[word]) if word in PLACES else None


def _ahead(seconds: int) -> tzinfo:
    return timezone(timedelta(seconds=seconds)) if seconds else UTC


def _spoken(zone: tzinfo) -> dict[str, list[tuple[datetime, int]]]:
    """The abbreviations that a place ever used: when, and the seconds ahead of UTC that they stood for."""
    return _spoken_as(zone, str(zone))


@lru_cache(maxsize=64)
def _spoken_as(zone: tzinfo, name: str) -> dict[str, list[tuple[datetime, int]]]:
    """Fixed offsets are equal, however they are called: the name tells them apart."""
    spoken: dict[str, list[tuple[datetime, int]]] = {}
    for year in range(1850, 2038):
        for month in (1, 4, 7, 10):
            at = datetime(year, month, 1, tzinfo=zone)
            name, offset = (at.tzname() or "").lower(), at.utcoffset()
            if name.isalpha() and offset is not None:
                spoken.setdefault(name, []).append((at.replace(tzinfo=None), int(offset.total_seconds())))
    return spoken


def from_spoken(local: datetime, zone: tzinfo, word: str) -> datetime:
    """The instant of a time with an abbreviation: by its offset at that time, else the last before, else the
    first."""
    uses = _spoken(zone).get(word)
    instant = from_zone(local, zone)
    if not uses or (instant.astimezone(zone).tzname() or "").lower() == word:
        return instant
    seconds = next((seconds for at, seconds in reversed(uses) if at <= local), uses[0][1])
    return from_zone(local, _ahead(seconds))


def spelling_of(name: str) -> str | None:
    """IANA's own spelling of a name."""
    return _names_by_lowercase().get(name.lower())


def zone_of(name: str) -> tzinfo | None:
    """By IANA's name, or in POSIX notation."""
    lowered = name.lower()
    if zone := _names_by_lowercase().get(_RENAMED.get(lowered, lowered)):
        return ZoneInfo(zone)
    if (posix := _POSIX.fullmatch(name)) and int(posix.group(3)) <= _HOURS_MAX:
        called, sign, *offset_fields, summer = posix.groups()
        hours, minutes, seconds = (int(each or 0) for each in offset_fields)
        west = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if summer or west >= timedelta(days=1):
            raise NotSupported("a time zone in POSIX notation that is more than an offset is not supported")
        return timezone(west if sign == "-" else -west, called.removeprefix("<").removesuffix(">"))
    return None


def session_zone(name: str) -> tzinfo:
    """The zone of a session: parsing times is quicker where it is UTC itself."""
    return UTC if name in ("UTC", "GMT") else zone_of(name) or UTC


def offset_zone(seconds: int) -> str:
    """The name of the zone that is so many seconds ahead of UTC, as PostgreSQL shows it: <+02>-02."""
    hours, rest = divmod(abs(seconds), 3600)
    text = f"{hours:02d}"
    if rest:
        text += f":{rest // 60:02d}" + (f":{rest % 60:02d}" if rest % 60 else "")
    return f"<-{text}>+{text}" if seconds < 0 else f"<+{text}>-{text}"


@lru_cache(maxsize=1)
def _names_by_lowercase() -> dict[str, str]:
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
