"""Times read by a pattern: to_date('24 Feb 2024', 'DD Mon YYYY'), to_timestamp.

Each keyword takes as many digits as it has letters at most, unless nothing but digits could follow;
text and signs between are passed over one for one, spaces generously. What the pattern does not
name is as in the year 1 before the first day, as PostgreSQL has it: January, the first, midnight.

Walk: `expr.format_functions` lists the functions; `expr.time_format` cuts the patterns.
"""

import re
from datetime import date, datetime, timedelta, timezone, tzinfo

from tenure.expr.errors import DatetimeOverflow, InvalidDatetime, NotSupported
from tenure.expr.time_format import MONTHS, Field, fields
from tenure.expr.times import JULIAN_OF_ORDINAL_0, timestamp_of
from tenure.expr.zones import from_zone

_DIGITS_MAX = {
    **{
        "YYYY": 4,
        "YYY": 3,
        "YY": 2,
        "Y": 1,
        "MM": 2,
        "DD": 2,
        "DDD": 3,
        "HH24": 2,
        "HH12": 2,
        "HH": 2,
        "MI": 2,
    },
    **{"SS": 2, "MS": 3, "US": 6, "SSSS": 5, "SSSSS": 5, "J": 10, "D": 1, "ID": 1, "Q": 1, "W": 1, "WW": 2},
    **{f"FF{n}": n for n in range(1, 7)},
    "TZM": 2,
}
_IGNORED = ("DAY", "DY", "Q", "D", "ID", "W", "WW")
_SCALES = {"MS": 3, "US": 6, **{f"FF{n}": n for n in range(1, 7)}}
_TEN_DIGITS = 10
"""At most, where a number may be as long as it likes."""


def read_date(text: str, pattern: str) -> date:
    reader = _Reader(text, pattern)
    reader.micros()  # is checked, and left out
    return reader.day()


def read_instant(text: str, pattern: str, zone: tzinfo) -> datetime:
    reader = _Reader(text, pattern)
    day, micros = reader.day(), reader.micros()
    ordinal = (day - date(2000, 1, 1)).days
    local = timestamp_of(ordinal * 86_400_000_000 + micros)
    return from_zone(local, reader.zone() or zone)


class _Reader:
    def __init__(self, text: str, pattern: str) -> None:
        self.text = text
        self.at = 0
        self.numbers: dict[str, int] = {}
        self.scaled = 0
        self.is_afternoon: bool | None = None
        self.zone_sign = 1
        parts = fields(pattern)
        for place, each in enumerate(parts):
            if each.key:
                self._skip_spaces()
                if self.at >= len(self.text):
                    break
                following = parts[place + 1] if place + 1 < len(parts) else None
                self._field(each, following)
            else:
                self._plain(each)

    def _skip_spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _plain(self, field: Field) -> None:
        """A separator of the pattern matches one, or none, of the text; a quoted letter any one."""
        if field.is_quoted or field.text.isalnum():
            self._skip_spaces()
            self.at += 1
        elif field.text.isspace():
            self._skip_separators(is_one=False)
        else:
            self._skip_spaces()
            self._skip_separators(is_one=True)

    def _skip_separators(self, *, is_one: bool) -> None:
        while self.at < len(self.text) and not self.text[self.at].isalnum():
            is_sign = self.text[self.at] in "+-" and not is_one
            if (
                is_sign
                and self.text[self.at + 1 : self.at + 2].isdigit()
                and not self.text[self.at].isspace()
            ):
                self.at += self.text[self.at] == "-"
                return
            is_space = self.text[self.at].isspace()
            self.at += 1
            if is_one or not is_space:
                return

    def _field(self, field: Field, following: Field | None) -> None:
        match field.key:
            case "MONTH" | "MON":
                self._month(is_short=field.key == "MON")
            case "DAY" | "DY":
                self.at = re.compile("[a-zA-Z]*").match(self.text, self.at).end()  # type: ignore[union-attr]
            case "AM" | "PM" | "A.M." | "P.M.":
                self._half()
            case "TZH":
                self._zone_hours()
            case key if key in _DIGITS_MAX:
                self._number(key, field, following)
            case "AD" | "A.D.":
                self.at += len(field.text)
            case _:
                raise NotSupported(f'"{field.text}" is not supported for reading a time')

    def _number(self, key: str, field: Field, following: Field | None) -> None:
        is_fixed = following is not None and bool(following.key) and not field.is_filling
        most = _DIGITS_MAX[key] if is_fixed or key in _SCALES else _TEN_DIGITS
        found = re.compile(f"[+-]?[0-9]{{1,{most}}}").match(self.text, self.at)
        if not found:
            raise InvalidDatetime(f'invalid value "{self.text[self.at : self.at + 4]}" for "{field.text}"')
        self.at = found.end()
        if field.suffix:
            self.at += 2
        digits = found.group()
        value = int(digits)
        if key in _SCALES:
            self.scaled += int(float(f"0.{digits}") * 1_000_000 + 0.5)
        elif key in ("YYY", "YY", "Y"):
            self.numbers["YYYY"] = _full_year(digits, value)
        elif key not in _IGNORED:
            self.numbers[key] = value

    def _month(self, *, is_short: bool) -> None:
        rest = self.text[self.at :].lower()
        for number, name in enumerate(MONTHS, 1):
            sought = (name[:3] if is_short else name).lower()
            if rest.startswith(sought):
                self.numbers["MM"] = number
                self.at += len(sought)
                return
        raise InvalidDatetime(f'invalid value "{rest[:3]}" for a month')

    def _half(self) -> None:
        found = re.compile(r"([ap])\.?m\.?", re.IGNORECASE).match(self.text, self.at)
        if not found:
            raise InvalidDatetime(f'invalid value "{self.text[self.at : self.at + 2]}" for "AM"')
        self.is_afternoon = found.group(1).lower() == "p"
        self.at = found.end()

    def _zone_hours(self) -> None:
        found = re.compile(r"([+-]?)(\d{1,2})").match(self.text, self.at)
        if not found:
            raise InvalidDatetime(f'invalid value "{self.text[self.at :]}" for "TZH"')
        self.zone_sign = -1 if found.group(1) == "-" else 1
        self.numbers["TZH"] = int(found.group(2))
        self.at = found.end()

    def day(self) -> date:
        numbers = self.numbers
        if "J" in numbers:
            return date.fromordinal(numbers["J"] - JULIAN_OF_ORDINAL_0)
        year = numbers.get("YYYY", 0)
        if "DDD" in numbers and year:
            if not 1 <= numbers["DDD"] <= 366:
                raise self._out_of_range()
            return date(year, 1, 1) + timedelta(days=numbers["DDD"] - 1)
        month, day = numbers.get("MM", 1), numbers.get("DD", 1)
        if not 1 <= month <= 12 or not 1 <= day <= 31:
            raise self._out_of_range()
        if not 1 <= year <= 9999:
            raise NotSupported(f'"{self.text}" is outside the years 1 to 9999')
        try:
            return date(year, month, day)
        except ValueError:
            raise self._out_of_range() from None

    def micros(self) -> int:
        numbers = self.numbers
        seconds = numbers.get("SSSS", numbers.get("SSSSS"))
        if seconds is not None:
            return seconds * 1_000_000 + self.scaled
        hour = self._hour()
        minute, second = numbers.get("MI", 0), numbers.get("SS", 0)
        if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
            raise self._out_of_range()
        return ((hour * 60 + minute) * 60 + second) * 1_000_000 + self.scaled

    def _hour(self) -> int:
        hour12 = self.numbers.get("HH12", self.numbers.get("HH"))
        if hour12 is None or (self.is_afternoon is None and "HH24" in self.numbers):
            return self.numbers.get("HH24", 0)
        if not 1 <= hour12 <= 12:
            raise _BadHour(f'hour "{hour12}" is invalid for the 12-hour clock')
        if self.is_afternoon is None:
            return hour12 % 12
        return hour12 % 12 + 12 * self.is_afternoon

    def zone(self) -> tzinfo | None:
        if "TZH" not in self.numbers:
            return None
        ahead = timedelta(hours=self.numbers["TZH"], minutes=self.numbers.get("TZM", 0))
        return timezone(self.zone_sign * ahead)

    def _out_of_range(self) -> DatetimeOverflow:
        return DatetimeOverflow(f'date/time field value out of range: "{self.text}"')


class _BadHour(InvalidDatetime):
    sqlstate = "22007"


def _full_year(digits: str, value: int) -> int:
    """Two digits are those of the years 1970 to 2069, as near as they can be."""
    if len(digits) == 4:
        return value
    if value < 70:
        return value + 2000
    if value < 100:
        return value + 1900
    return value + 2000 if value < 520 else value + 1000 if value < 1000 else value
