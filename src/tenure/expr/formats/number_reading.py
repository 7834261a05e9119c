"""Numbers read by a pattern: to_number('1,234.5-', '9G999D9S').

Pattern and text are read in step. A digit of the pattern takes a digit, the point, or a sign before or behind
the number. A separator is skipped if the text has one. Any other character of the pattern skips one character
of the text. The characters taken are read as a numeric with as many digits as the pattern has places for;
more digits are out of range (22003).

Walk: `expr.formats.format_functions` lists the function; `expr.formats.number_format` reads the patterns.
"""

from decimal import Decimal

from tenure.base.errors import NotSupported, OutOfRange
from tenure.base.interruptible import paced
from tenure.expr.formats.number_format import NumberPattern, shape_of
from tenure.expr.functions.arithmetic import numeric_multiply
from tenure.expr.functions.math_functions import numeric_power
from tenure.expr.types.numbers import parse_numeric

_DATA = "0123456789.,+-"
"""Characters that are never skipped where a sign or a currency symbol is expected."""
_DIGITS = "0123456789"


def parse_number(text: str, pattern: str) -> Decimal | None:
    if not pattern:
        return None
    shape = shape_of(pattern)
    if "E" in shape.flags:
        raise NotSupported('"EEEE" not supported for input')
    if "RN" in shape.flags:
        raise NotSupported('"RN" is not supported for input')
    reader = _Reader(text, shape)
    reader.read()
    value = parse_numeric(reader.sign + reader.number_text.removesuffix("."))
    if abs(value) >= Decimal(10) ** (shape.before + shape.multiplied):
        raise OutOfRange("numeric field overflow")
    if "V" not in shape.flags:
        return value
    return numeric_multiply(value, numeric_power(Decimal(10), Decimal(-shape.multiplied)))


class _Reader:
    def __init__(self, text: str, shape: NumberPattern) -> None:
        self.text = text
        self.shape = shape
        self.at = 0
        self.sign = " "
        self.number_text = ""
        self.has_point = False
        self.after = 0

    def read(self) -> None:
        for node in paced(self.shape.nodes):
            if self._is_over():
                return
            if not node.keyword:
                self.at += 1
                continue
            match node.keyword.upper():
                case "9" | "0" | "." | "D" as key:
                    self._place(is_digit=key in "90")
                    self.at += 1
                case "," | "G":
                    if "FM" not in self.shape.flags and self._here() == ",":
                        self.at += 1
                case "L":
                    self._pass_over(1)
                case "TH":
                    if "." not in self.shape.flags:
                        self._pass_over(2)
                case "MI":
                    self._take_sign("-")
                case "PL":
                    self._take_sign("+")
                case "SG":
                    self._take_sign("-+")

    def _is_over(self) -> bool:
        return self.at >= len(self.text)

    def _here(self) -> str:
        return self.text[self.at : self.at + 1]

    def _pass_over(self, count: int) -> None:
        for _ in range(count):
            if self._is_over() or self._here() in _DATA:
                return
            self.at += 1

    def _take_sign(self, signs: str) -> None:
        if self._here() in signs:
            self.sign = self._here()
            self.at += 1
        else:
            self._pass_over(1)

    def _place(self, *, is_digit: bool) -> None:
        """Reads the text at a digit or the point of the pattern."""
        if self._here() == " ":
            self.at += 1
        if self._is_over():
            return
        if self.sign == " " and is_digit and not self.number_text.strip("."):
            self._sign_before()
        if self._is_over():
            return
        is_read = False
        if self._here() in _DIGITS:
            if self.has_point and self.after == self.shape.after:
                return
            self.number_text += self._here()
            self.after += self.has_point
            is_read = True
        elif "." in self.shape.flags and not self.has_point and self._here() == ".":
            self.number_text += "."
            self.has_point = is_read = True
        if self.sign == " " and self.number_text.strip("."):
            self._sign_behind(is_read=is_read)

    def _sign_before(self) -> None:
        flags = self.shape.flags
        if "S" in flags and self.shape.sign_place != "before":
            signs = "-+"
        else:
            signs = "-+<" if "PR" in flags and "S" not in flags else "-+"
        if self._here() in signs:
            self.sign = "+" if self._here() == "+" else "-"
            self.at += 1

    def _sign_behind(self, *, is_read: bool) -> None:
        flags = self.shape.flags
        following = self.text[self.at + 1 : self.at + 2]
        if "S" in flags and is_read and following and following not in _DIGITS:
            if following in "-+":
                self.sign = following
                self.at += 1
        elif not is_read and "S" not in flags and flags & {"MI", "PL"} and self._here() in "-+":
            self.sign = self._here()
