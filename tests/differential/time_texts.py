"""Texts of days, times and intervals, in all the ways that people write them, and some in which they do not.

Walk: `texts` asks for one of a type, and breaks it.
"""

from random import Random

ZONES = (
    *("Z", "UTC", "utc", "EST", "EDT", "CET", "CEST", "PST8PDT", "Europe/Berlin", "america/new_york", "MSK"),
    *("+02", "-05:30", "+0530", "+5", "-16", "+15:59", "+15:59:59", "+15:60", "+00:00:60", "+123", "-12345"),
    *(
        "Nowhere/Land",
        "XYZ",
        "BST",
        "IST",
        "ART",
        "MET DST",
        "DST",
        "EST DST",
        "zulu",
        "GMT+3",
        "UTC-2",
        "foo-5",
    ),
)
WORDS = (
    *(
        "now",
        "today",
        "tomorrow",
        "yesterday",
        "allballs",
        "epoch",
        "infinity",
        "-infinity",
        "+infinity",
        "inf",
    ),
    *(
        "am",
        "pm",
        "bc",
        "ad",
        "at",
        "on",
        "t",
        "T",
        "j",
        "julian",
        "jd",
        "d",
        "m",
        "mm",
        "y",
        "h",
        "s",
        "dst",
    ),
    *(
        "mon",
        "Tue",
        "thursday",
        "jan",
        "Sept",
        "december",
        "ago",
        "foo",
        "day",
        "P",
        "PT",
        "null",
        "nan",
        "@",
    ),
)
UNITS = (
    *(
        "year",
        "years",
        "y",
        "yr",
        "yrs",
        "mon",
        "mons",
        "month",
        "months",
        "week",
        "weeks",
        "w",
        "day",
        "days",
    ),
    *("d", "hour", "h", "hr", "hrs", "minute", "min", "mins", "m", "second", "sec", "s", "ms", "us", "usecs"),
    *("milliseconds", "microsecond", "microsecondsx", "decade", "dec", "century", "c", "millennium", "mil"),
    *("quarter", "qtr", "mm", "timezone", "dow", "julian", "yearx", "fortnight", "MONTHS", "Day"),
)


class TimeTexts:
    def __init__(self, random: Random) -> None:
        self._random = random

    def _digits(self, most: int = 5) -> str:
        return digits(self._random, most)

    def _year(self) -> str:
        random = self._random
        return random.choice(
            [str(random.randint(1, 9999)), f"{random.randint(0, 99):02d}", self._digits(6), "2024"]
        )

    def _month(self) -> str:
        random = self._random
        return random.choice([f"{random.randint(0, 13):02d}", str(random.randint(1, 12)), self._digits(3)])

    def _dayish(self) -> str:
        random = self._random
        return random.choice([f"{random.randint(1, 31):02d}", str(random.randint(0, 32)), self._digits(3)])

    def _name(self) -> str:
        return self._random.choice(["Jan", "feb", "MAR", "april", "Sept", "december", "Okt", "mon"])

    def day(self) -> str:
        random = self._random
        if random.random() < 0.3:
            return self._around(self._plain_day())
        year, month, day, name = self._year(), self._month(), self._dayish(), self._name()
        between = random.choice("--/. ")
        text = random.choice(
            [
                between.join([year, month, day]),
                between.join([month, day, year]),
                between.join([day, name, year]),
                between.join([year, name, day]),
                between.join([name, day, year]),
                f"{name} {day}, {year}",
                f"{random.choice(['Mon', 'thurs'])} {name} {day} {year}",
                year + month + day,
                f"{year}.{self._digits(3)}",
                f"{year}-{self._digits(3)}",
                random.choice(["J", "julian ", "jd "]) + self._digits(8) + random.choice(["", ".5", "-05"]),
                between.join([year, month]),
                self._digits(8),
                random.choice(WORDS),
                f"y{year}m{month}d{day}",
            ]
        )
        return self._around(text)

    def _plain_day(self) -> str:
        random = self._random
        return f"{random.randint(1, 9999):04d}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}"

    def _around(self, text: str) -> str:
        random = self._random
        if random.random() < 0.15:
            text += random.choice([" BC", " ad", "BC", " bc bc"])
        if random.random() < 0.1:
            text = random.choice(["{}", '"{}"', "({})", "{};"]).replace("{}", text)
        if random.random() < 0.15:
            word = random.choice(WORDS)
            text = random.choice([f"{word} {text}", f"{text} {word}", f"{text}{word}"])
        return text

    def _clock(self) -> str:
        random = self._random
        hour, minute, second = random.randint(0, 25), random.randint(0, 61), random.randint(0, 61)
        return random.choice(
            [
                f"{hour:02d}:{minute:02d}:{second:02d}",
                f"{hour % 24:02d}:{minute % 60:02d}:{second % 60:02d}.{self._digits(9)}",
                f"{hour}:{minute}",
                f"{hour}:{minute}:{second}.",
                f"{minute}:{second}.{self._digits(3)}",
                f"{hour:02d}{minute:02d}",
                f"{hour:02d}{minute:02d}{second:02d}",
                f"{hour % 24:02d}{minute % 60:02d}{second % 60:02d}.{self._digits(7)}",
                f"{hour}:",
                f"{hour}::{second}",
                f"{self._digits(12)}:{minute}",
                f"T{hour:02d}{minute:02d}",
                "24:00:00",
                "23:59:60",
                "23:59:59.9999999",
                self._digits(7),
            ]
        )

    def zone(self) -> str:
        return self._random.choice(ZONES)

    def _zone(self) -> str:
        random = self._random
        if random.random() < 0.5:
            return ""
        return random.choice(["", " "]) + random.choice(ZONES)

    def time(self) -> str:
        random = self._random
        text = self._clock() + random.choice(["", "", " am", " PM", "pm"]) + self._zone()
        if random.random() < 0.25:
            text = random.choice([self._plain_day(), self.day()]) + random.choice([" ", "T", "t"]) + text
        elif random.random() < 0.1:
            text += " " + self.day()
        return self._around(text)

    def timestamp(self) -> str:
        random = self._random
        if random.random() < 0.1:
            return self.time()
        if random.random() < 0.1:
            day = f"{random.choice(['Mon', 'Fri'])} {self._name()} {self._dayish()}"
            return f"{day} {self._clock()} {self._year()}{self._zone()}"
        day = self._plain_day() if random.random() < 0.5 else self.day()
        between = random.choice([" ", " ", "T", "t", "", ",", " at ", "  "])
        return self._around(
            day + between + self._clock() + random.choice(["", "", " am", "PM"]) + self._zone()
        )

    def interval(self) -> str:
        random = self._random
        match random.randrange(8):
            case 0:
                return self._iso_interval()
            case 1:
                return (
                    f"{self._amount()}-{self._digits(2)} {self._amount()} {self._amount()}:{self._digits(2)}"
                )
            case 2:
                return f"{random.choice(['', '-', '+'])}{self._clock()}"
            case 3:
                return self.day()
            case _:
                return self._verbose_interval()

    def _verbose_interval(self) -> str:
        random = self._random
        parts = []
        for _ in range(random.randint(1, 4)):
            between = random.choice([" ", " ", "", "  "])
            parts.append(self._amount() + between + random.choice(UNITS))
        if random.random() < 0.3:
            parts.append(random.choice(["", "-", "+"]) + self._clock())
        if random.random() < 0.15:
            parts.append(random.choice(["ago", "ago", "infinity", "at", self._amount(), *WORDS]))
        return random.choice(["", "", "@ "]) + random.choice([" ", " ", ", ", ""]).join(parts)

    def _amount(self) -> str:
        random = self._random
        sign = random.choice(["", "", "", "-", "+", "- "])
        number = random.choice(
            [
                self._digits(2),
                self._digits(4),
                self._digits(11),
                self._digits(21),
                "2147483647",
                "2147483648",
                "178956970",
            ]
            if random.random() < 0.3
            else [self._digits(1), self._digits(2)]
        )
        return sign + number + random.choice(["", "", "", f".{self._digits(8)}", ".5", "."])

    def _iso_interval(self) -> str:
        random = self._random
        if random.random() < 0.3:
            return random.choice(
                [
                    f"P{self._digits(4)}-{self._digits(2)}-{self._digits(2)}T{self._clock()}",
                    f"P{self._digits(8)}T{self._digits(6)}",
                    f"PT{self._clock()}",
                    f"P{self._amount()}",
                    f"P{self._digits(4)}-{self._digits(2)}",
                ]
            )
        letters = random.choice(["YMWD", "YMD", "D", "YY", "DM"])
        text = "P" + "".join(
            self._amount().replace("- ", "-") + each for each in letters if random.random() < 0.7
        )
        if random.random() < 0.6:
            text += "T" + "".join(
                self._amount().replace("- ", "-") + each for each in "HMS" if random.random() < 0.7
            )
        return text


def digits(random: Random, most: int) -> str:
    return "".join(random.choice("0123456789") for _ in range(random.randint(1, most)))
