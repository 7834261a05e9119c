"""The fields that text of days, times and intervals is cut into, before anything is known about them.

    2024-02-29 12:34:56.7+02   date, time, zone
    Feb 29, 2024 1 pm          word, number, number, number, word
    -1-2 +3 -infinity          zone, zone, special

What a field means is decided later, beside the others: a "zone" is a field that has a sign
and a digit, a "date" one that has separators within.

Walk: `expr.types.time_text` and `expr.types.interval_text` call `cut`.
"""

import re
from typing import NamedTuple

from tenure.expr.types.time_words import WORDS

NUMBER, DATE, TIME, ZONE, WORD, SPECIAL = "number", "date", "time", "zone", "word", "special"
FIELDS_MAX = 25
"""PostgreSQL's limit; the callers' limits of the length are PostgreSQL's, too."""

MATCHED_LENGTH = 1 << 16
"""A field and what separates it from the one before are sought in so many characters: a text of 64 Mi digits
would keep the pattern busy for a second, and is too long anyway.
"""

_FIELD = re.compile(
    r"""[\s!"#$%&'()*,/:;<=>?@\[\\\]^_`{|}~]*+(?:
      (?P<time>\d+:[\d:.]*)
    | (?P<date>\d+(?:-\d+(?:-[\d-]*)?|/\d+(?:/[\d/]*)?|\.\d+\.[\d.]*|-[a-z\d-]*|/[a-z\d/]*|\.(?!\d)[a-z\d.]*))
    | (?P<number>\d+(?:\.\d+)?|\.\d*)
    | (?P<word>[a-z]+)(?P<more>[-/.+\d][-+/_.:a-z\d]*)?
    | (?P<sign>[+-])\s*+(?:(?P<zone>\d[\d:.-]*)|(?P<special>[a-z]+))
    | $)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


class BadFormat(Exception):
    """The text is no value of the type."""


class BadField(Exception):
    """A field is out of its range."""


class BadZoneOffset(Exception):
    """The offset from UTC is out of its range."""


class TimeField(NamedTuple):
    kind: str
    text: str


def cut(text: str, room: int) -> list[TimeField]:
    """Raises BadFormat for a character that no field begins with, and for text that is too long."""
    fields: list[TimeField] = []
    at = 0
    while at < len(text):
        found = _FIELD.match(text, at, at + MATCHED_LENGTH)
        if found is None:
            raise BadFormat
        at = found.end()
        if found.lastgroup is None:
            continue  # separators alone: the text ends here, or there are more than were looked at
        field = _field(found)
        if field.kind == WORD and (more := found["more"]):
            if more[0] in "-/." or field.text not in WORDS:
                field = TimeField(DATE, (field.text + more).lower())
            else:
                at = found.start("more")
        room -= len(field.text) + 1
        if room < 0 or len(fields) == FIELDS_MAX:
            raise BadFormat
        fields.append(field)
    return fields


def _field(found: re.Match[str]) -> TimeField:
    if found["sign"]:
        kind = ZONE if found["zone"] else SPECIAL
        return TimeField(kind, found["sign"] + found[kind].lower())
    kind = next(each for each in (WORD, DATE, TIME, NUMBER) if found[each])
    return TimeField(kind, found[kind].lower())
