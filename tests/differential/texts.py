"""Texts that a type may or may not accept: plausible ones put together by a grammar, and broken ones of them.

Walk: `text_run` asks both sides about each.
"""

from collections.abc import Callable
from random import Random

from tests.differential.time_texts import TimeTexts, digits
from tests.differential.values import ENUM, ENUM_LABELS, NASTY, quoted

MODIFIED = {
    "numeric": ("numeric(5)", "numeric(6,2)", "numeric(3,5)", "numeric(4,-2)", "numeric(1000,1000)"),
    "varchar": ("varchar(3)", "varchar(1)"),
    "char": ("char(3)", "char"),
    "time": ("time(0)", "time(2)"),
    "timestamp": ("timestamp(0)", "timestamp(3)"),
    "timestamptz": ("timestamptz(0)", "timestamptz(4)"),
    "interval": ("interval(0)", "interval(3)"),
}
SPACES = (" ", "  ", "\t", "\n", "\v", "\f", "\r", "\u00a0", "\u2003")
ODD = (
    "_",
    "__",
    "+",
    "-",
    ".",
    ",",
    ":",
    "/",
    "e",
    "E5",
    "x",
    "0x",
    "'",
    '"',
    "\\",
    "{",
    "}",
    "[",
    "]",
    "(",
    "@",
)
OTHER = ("٣", "１", "ı", "İ", "ſ", "K", "é", "😀", "\x01", "\x7f", "−", "½")
"""Digits and letters of other scripts, which look like those that count."""
BOOLEANS = (
    *("true", "false", "yes", "no", "on", "off", "t", "f", "y", "n", "1", "0"),
    *("tr", "fal", "ye", "of", "o", "10", "00"),
)
NUMBER_PATTERNS = (
    *(
        "9",
        "99",
        "0",
        "00",
        ".",
        ",",
        "D",
        "G",
        "S",
        "MI",
        "PL",
        "SG",
        "PR",
        "FM",
        "L",
        "TH",
        "V",
        "RN",
        "EEEE",
    ),
    *("B", " ", "x", '"a"', "999", "$"),
)
TIME_PATTERNS = (
    *(
        "YYYY",
        "YY",
        "Y,YYY",
        "MM",
        "Mon",
        "MONTH",
        "DD",
        "DDD",
        "HH24",
        "HH12",
        "HH",
        "MI",
        "SS",
        "MS",
        "US",
        "AM",
    ),
    *(
        "p.m.",
        "BC",
        "a.d.",
        "TZ",
        "OF",
        "TZH",
        "TZM",
        "J",
        "Q",
        "D",
        "ID",
        "IW",
        "IYYY",
        "WW",
        "W",
        "CC",
        "RM",
        "FF3",
    ),
    *("-", ":", " ", "/", "T", '"x"', "FM", "FX", "th", "TM", "day", "Dy", "SSSSS", ".", "x"),
)
TIMES = ("date", "time", "timestamp", "timestamptz", "interval")


class Texts:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._times = times = TimeTexts(random)
        self._makers: dict[str, Callable[[], str]] = {
            "bool": self._bool,
            "int2": self._integer,
            "int4": self._integer,
            "int8": self._integer,
            "float4": self._float,
            "float8": self._float,
            "numeric": self._float,
            "text": self._string,
            "varchar": self._string,
            "char": self._string,
            "bytea": self._bytes,
            "uuid": self._uuid,
            "date": times.day,
            "time": times.time,
            "timestamp": times.timestamp,
            "timestamptz": times.timestamp,
            "interval": times.interval,
            "json": self._json,
            "jsonb": self._json,
            ENUM: lambda: random.choice(ENUM_LABELS),
        }

    def one(self) -> tuple[str, str]:
        """A type and a text."""
        random = self._random
        kind = random.choice([*self._makers, *TIMES, *TIMES])
        if random.random() < 0.1:
            return f"{kind}[]", self._broken(self._array(kind))
        text = self.text(kind)
        if kind in MODIFIED and random.random() < 0.25:
            kind = random.choice(MODIFIED[kind])
        return kind, text

    def zone(self) -> str:
        return self._broken(self._times.zone())

    def call(self) -> str:
        """A call of a function that writes or reads by a pattern."""
        random = self._random
        name = random.choice(["to_char", "to_char", "to_number", "to_date", "to_timestamp"])
        is_number = name == "to_number" or (name == "to_char" and random.random() < 0.5)
        patterns = NUMBER_PATTERNS if is_number else TIME_PATTERNS
        pattern = "".join(random.choice(patterns) for _ in range(random.randint(1, 5)))
        if name == "to_char":
            kinds = ("int4", "int8", "float4", "float8", "numeric") if is_number else TIMES[2:]
            kind = random.choice(kinds)
            return f"SELECT to_char({quoted(random.choice(NASTY[kind]))}::{kind}, {quoted(pattern)})"
        text = self._float() if is_number else random.choice([self._times.timestamp(), self._times.day()])
        # PostgreSQL counts in bytes, and shows halves of characters.
        text = self._broken(text).encode("ascii", "ignore").decode()
        return f"SELECT {name}({quoted(text)}, {quoted(pattern)})"

    def text(self, kind: str) -> str:
        pool = NASTY.get(kind)
        is_known = pool is not None and self._random.random() < 0.15
        return self._broken(self._random.choice(pool) if is_known and pool else self._makers[kind]())

    def _broken(self, text: str) -> str:
        """The text itself, half the time; else with a few mistakes."""
        random = self._random
        while random.random() < 0.4:
            text = self._mistake(text)
        return text.replace("\0", "")

    def _mistake(self, text: str) -> str:
        random = self._random
        at = random.randrange(len(text) + 1)
        end = min(len(text), at + random.randrange(1, 4))
        match random.randrange(11):
            case 0:
                return random.choice(SPACES) + text
            case 1:
                return text + random.choice(SPACES)
            case 2:
                return text[:at] + random.choice(SPACES) + text[at:]
            case 3:
                return text[:at] + text[end:]
            case 4:
                return text[:at] + text[at:end] * 2 + text[end:]
            case 5:
                return text[:at] + random.choice(ODD) + text[at:]
            case 6:
                return text[:at] + random.choice(ODD) + text[end:]
            case 7:
                return text.upper() if random.random() < 0.5 else text.title()
            case 8:
                return text[:at] + random.choice(OTHER) + text[at:] if random.random() < 0.4 else text[:at]
            case 9:
                return text[:at] + random.choice("0123456789") + text[at:]
            case _:
                return random.choice(["+", "-", " -", "- "]) + text

    def _digits(self, most: int = 5) -> str:
        return digits(self._random, most)

    def _bool(self) -> str:
        return self._random.choice(BOOLEANS)

    def _integer(self) -> str:
        random = self._random
        edge = random.choice([2**15, 2**31, 2**63, 2**16, 2**64, 10**18, 0, 1]) + random.choice([-1, 0, 1])
        return random.choice(
            [
                self._digits(22),
                str(edge),
                str(-edge),
                f"{edge:_}",
                hex(edge),
                oct(edge),
                bin(edge),
                f"{random.choice(['0x', '0o', '0b', '0X', '-0x', '0x_'])}{self._digits()}",
                f"{self._digits(20)}.{self._digits(3)}",
                f"{self._digits()}_{self._digits()}",
                f"{self._digits()}e{self._digits(2)}",
            ]
        )

    def _float(self) -> str:
        random = self._random
        if random.random() < 0.15:
            words = (
                "NaN",
                "nan",
                "-nan",
                "Infinity",
                "-inf",
                "+inf",
                "infinit",
                "nan()",
                "INF",
                "inf1",
                "--inf",
            )
            return random.choice(words)
        if random.random() < 0.2:
            return self._integer()
        text = random.choice(["", "-", "+"]) + self._digits(random.choice([3, 20, 40]))
        if random.random() < 0.6:
            text += "." + (self._digits(20) if random.random() < 0.9 else "")
        if random.random() < 0.4:
            power = random.choice(
                [self._digits(1), self._digits(3), "308", "38", "45", "324", "400", "16383", "131071"]
            )
            text += random.choice("eE") + random.choice(["", "-", "+"]) + power
        return text

    def _string(self) -> str:
        words = (
            "",
            "a",
            "ab ",
            "abc",
            "abcd",
            "abc  ",
            "  a",
            "Zürich",
            "😀😀😀😀",
            "a\tb",
            "\\x41",
            "NULL",
            "a'b",
        )
        return self._random.choice(words)

    def _bytes(self) -> str:
        random = self._random
        digits = (
            random.randbytes(random.randrange(5)).hex(random.choice(" \n")) if random.random() < 0.3 else ""
        )
        pairs = random.randbytes(random.randrange(5)).hex()
        escapes = "".join(
            random.choice(["\\000", "\\377", "\\400", "\\\\", "a", "é", "\\12", "\\08"]) for _ in range(4)
        )
        return random.choice([f"\\x{digits}", f"\\x{pairs}", f"\\X{pairs}", escapes, pairs])

    def _uuid(self) -> str:
        random = self._random
        digits = random.randbytes(16).hex()
        step = random.choice([4, 8, 2, 3, 32])
        cut = "-".join(digits[at : at + step] for at in range(0, 32, step))
        plain = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        return random.choice([plain, digits, cut, "{" + plain + "}", "{" + cut, plain.upper()])

    # What contains others.

    def _json(self, depth: int = 0) -> str:
        random = self._random
        space = random.choice(["", "", " ", "\n", "\t"])
        if depth < 3 and random.random() < 0.35:
            pairs = [
                f"{self._json_string()}{space}:{self._json(depth + 1)}" for _ in range(random.randrange(4))
            ]
            return "{" + f",{space}".join(pairs) + "}"
        if depth < 3 and random.random() < 0.35:
            return "[" + f"{space},".join(self._json(depth + 1) for _ in range(random.randrange(4))) + "]"
        return random.choice([self._json_string, self._json_number, self._json_word])()

    def _json_string(self) -> str:
        random = self._random
        pieces = (
            "a",
            "é",
            "\\n",
            "\\u00e9",
            "\\u0000",
            "\\ud83d\\ude00",
            "\\ud83d",
            "\\ude00",
            "\\x",
            "\\u12",
            "\t",
            "\\/",
        )
        return '"' + "".join(random.choice(pieces) if random.random() < 0.5 else "b" for _ in range(3)) + '"'

    def _json_number(self) -> str:
        random = self._random
        return random.choice(
            [
                self._digits(3),
                f"-{self._digits(2)}",
                f"{random.randrange(100)}.{self._digits(3)}",
                f"{random.randrange(10)}e{self._digits(2)}",
                "01",
                "1.",
                "-",
                "1.50",
                "-0",
                "-0.0",
                "1E+2",
                "1e-3",
                "0x1",
                "1_0",
            ]
        )

    def _json_word(self) -> str:
        return self._random.choice(
            ["true", "false", "null", "True", "nul", "NaN", "Infinity", "undefined", ""]
        )

    def _array(self, kind: str, depth: int = 0) -> str:
        random = self._random
        if depth < 2 and random.random() < 0.25:
            body = ",".join(self._array(kind, depth + 1) for _ in range(random.randint(0, 3)))
        else:
            body = random.choice([",", ",", " , ", ", "]).join(
                self._element(kind) for _ in range(random.randint(0, 3))
            )
        text = "{" + body + "}"
        if depth == 0 and random.random() < 0.15:
            count = body.count(",") + 1
            text = random.choice(
                [f"[1:{count}]={text}", f"[2:{count + 1}]={text}", f"[{count}]={text}", f"[1:2][1:2]={text}"]
            )
        return text

    def _element(self, kind: str) -> str:
        random = self._random
        if random.random() < 0.1:
            return random.choice(["NULL", "null", '"NULL"', '""', "", "\\NULL"])
        known = kind in NASTY and random.random() < 0.8
        text = random.choice(NASTY[kind]) if known else self.text(kind)
        if random.random() < 0.7:
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return text
