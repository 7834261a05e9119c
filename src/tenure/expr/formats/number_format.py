"""Numbers by a pattern: to_char(1234.5, 'FM9,999.00').

    9 0   a digit; 0 keeps it where the number has none      . D   the point     , G   between thousands
    S MI PL SG PR   signs    FM   no padding    L   currency (a space)    RN   Roman    TH   ordinal
    V   times ten for each digit after it    EEEE   exponent

The steps are those of PostgreSQL's NUM_processor: which of blank, zero or digit stands in each place
depends on how far the number's own digits are from the pattern's first.

Walk: `expr.formats.format_functions` lists the functions; `expr.formats.number_reading` reads by the same
patterns.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from math import copysign, isfinite

from tenure.base.errors import InvalidText, OutOfRange, SyntaxFault
from tenure.base.interruptible import paced
from tenure.expr.formats.format_pattern import PatternPiece, kept, ordinal, pieces
from tenure.expr.functions.arithmetic import numeric_multiply
from tenure.expr.types.numbers import INT_NAMES, fits, rounded

_KEYWORDS = (
    *(",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP", "S"),
    *("TH", "V", "b", "c", "d", "eeee", "fm", "g", "l", "mi", "pl", "pr", "rn", "sg", "sp", "s", "th", "v"),
)
_ROMAN = [
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC")),
    *((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
]


_END = "\0"
"""Where the digits have ended, PostgreSQL writes the end of the text: nothing is seen behind it."""


@dataclass
class NumberPattern:
    """The properties of a whole pattern."""

    nodes: list[PatternPiece] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    before: int = 0
    after: int = 0
    multiplied: int = 0
    zero_start: int | None = None
    zero_end: int = 0
    sign_place: str = ""
    before_sign: int = 0


@kept
def shape_of(pattern: str) -> NumberPattern:
    shape = NumberPattern(nodes=pieces(pattern, _KEYWORDS))
    for node in paced(shape.nodes):
        if node.keyword:
            _note(shape, node.keyword.upper())
    return shape


def _note(shape: NumberPattern, key: str) -> None:
    flags = shape.flags
    if "E" in flags:
        is_again = key == "EEEE"
        raise SyntaxFault('cannot use "EEEE" twice' if is_again else '"EEEE" must be the last pattern used')
    if key in ("9", "0"):
        _note_digit(shape, key)
    elif key in ("D", "."):
        if "." in flags:
            raise SyntaxFault("multiple decimal points")
        if "V" in flags:
            raise SyntaxFault('cannot use "V" and decimal point together')
        flags.add(".")
    elif key in ("S", "MI", "PL", "SG", "PR"):
        _note_sign(shape, key)
    elif key == "V":
        if "." in flags:
            raise SyntaxFault('cannot use "V" and decimal point together')
        flags.add("V")
    elif key == "EEEE":
        if flags & {"B", "FM", "S", "MI", "PL", "PR", "RN", "V"}:
            raise SyntaxFault(
                '"EEEE" is incompatible with other formats',
                detail='"EEEE" may only be used together with digit and decimal point patterns.',
            )
        flags.add("E")
    elif key == "FM" or (key == "B" and not shape.before and not shape.after):
        flags.add(key)
    elif key == "RN":
        if "RN" in flags:
            raise SyntaxFault('cannot use "RN" twice')
        flags.add("RN")
    if "RN" in flags and (flags - {"RN", "FM"} or shape.zero_start is not None):
        raise SyntaxFault(
            '"RN" is incompatible with other formats', detail='"RN" may only be used together with "FM".'
        )


def _note_digit(shape: NumberPattern, key: str) -> None:
    if "PR" in shape.flags:
        raise SyntaxFault(f'"{key}" must be ahead of "PR"')
    if key == "9" and "V" in shape.flags:
        shape.multiplied += 1
        return
    if key == "0" and shape.zero_start is None and "." not in shape.flags:
        shape.zero_start = shape.before
    if "." in shape.flags:
        shape.after += 1
    else:
        shape.before += 1
    if key == "0":
        shape.zero_end = shape.before + shape.after


def _note_sign(shape: NumberPattern, key: str) -> None:
    flags = shape.flags
    if key == "PR" and flags & {"S", "MI", "PL"}:
        raise SyntaxFault('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
    if "S" in flags:
        raise SyntaxFault('cannot use "S" twice' if key == "S" else f'cannot use "S" and "{key}" together')
    if key == "S":
        if flags & {"MI", "PL", "PR"}:
            raise SyntaxFault('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
        flags.add("S")
        shape.sign_place = "after" if "." in flags else "before"
        shape.before_sign = shape.before
    elif key == "PR":
        flags.add("PR")
    else:
        flags |= {"MI", "PL"} if key == "SG" else {key}


def format_number(value: Decimal, pattern: str) -> str:
    """Rounded half away from zero; what becomes zero has no sign."""
    shape = shape_of(pattern)
    if "RN" in shape.flags:
        return _roman(shape, int(rounded(value, 0)) if value.is_finite() else 0)
    if "E" in shape.flags:
        return _scientific(value, shape)
    if not value.is_finite():
        is_negative = not value.is_nan() and value < 0
        return _written(shape, "NaN" if value.is_nan() else "Infinity", shape.after, is_negative=is_negative)
    if shape.multiplied:
        value = numeric_multiply(value, Decimal(10) ** shape.multiplied)
    kept = rounded(value, shape.after)
    return _written(shape, f"{kept.copy_abs():f}", shape.after, is_negative=kept < 0)


def format_int4(value: int, pattern: str) -> str:
    """Raises OutOfRange if the product with V is beyond 32 bits; in PostgreSQL it wraps around."""
    shape = shape_of(pattern)
    if "E" in shape.flags:
        return format_float(float(value), pattern, 15)
    if shape.multiplied:
        value = _product(value, 10**shape.multiplied, 4)
    return _whole(value, shape)


def format_int8(value: int, pattern: str) -> str:
    shape = shape_of(pattern)
    if "E" in shape.flags:
        return format_number(Decimal(value), pattern)
    if shape.multiplied:
        value = _product(value, 10**shape.multiplied, 8)
    return _whole(value, shape)


def _product(value: int, factor: int, size: int) -> int:
    product = value * factor
    if not (fits(factor, size) and fits(product, size)):
        raise OutOfRange(f"{INT_NAMES[size]} out of range")
    return product


def _whole(value: int, shape: NumberPattern) -> str:
    if "RN" in shape.flags:
        return _roman(shape, value)
    digits = str(abs(value)) + ("." + "0" * shape.after if shape.after else "")
    return _written(shape, digits, shape.after, is_negative=value < 0)


def format_float(value: float, pattern: str, digits: int) -> str:
    """Rounded as the machine prints it, to the digits that a float is sure of: 15, or 6."""
    shape = shape_of(pattern)
    if "RN" in shape.flags:
        return _roman(shape, round(value) if isfinite(value) else 0)
    if "E" in shape.flags:
        text = f"{value:.{shape.after}e}" if isfinite(value) else _unscientific(shape)
        return text if text.startswith("-") else " " + text
    value *= 10.0**shape.multiplied
    whole = len(_fixed(value, 0))
    after = 0 if whole >= digits else min(shape.after, digits - whole)
    is_negative = value == value and copysign(1.0, value) < 0
    return _written(shape, _fixed(value, after), after, is_negative=is_negative)


def _fixed(value: float, after: int) -> str:
    """Without its sign; the letters of what is not finite count as digits before the point."""
    if isfinite(value):
        return f"{abs(value):.{after}f}"
    return "NaN" if value != value else "Infinity"


def _written(shape: NumberPattern, text: str, after: int, *, is_negative: bool) -> str:
    before = shape.before + shape.multiplied
    whole_digits = len(text.partition(".")[0])
    if whole_digits > before:
        text = "#" * before + "." + "#" * after
    spaces = max(before - whole_digits, 0)
    return _Writer(shape, text, is_negative=is_negative, spaces=spaces, before=before, after=after).write()


def _roman(shape: NumberPattern, number: int) -> str:
    text = ""
    if 1 <= number <= 3999:
        for size, letters in _ROMAN:
            text += letters * (number // size)
            number %= size
    return _Writer(shape, "", is_negative=False, roman=text or "#" * 15).write()


def _scientific(value: Decimal, shape: NumberPattern) -> str:
    """As PostgreSQL writes it, the exponent is found before rounding: 9.99 may become 10.0e+00."""
    if not value.is_finite():
        return " " + _unscientific(shape)
    exponent = value.adjusted() if value else 0
    text = f"{rounded(value.scaleb(-exponent), shape.after):f}e{exponent:+03d}"
    return text if text.startswith("-") else " " + text


def _unscientific(shape: NumberPattern) -> str:
    """As wide as the pattern: here also the digits count that a finite number would not have."""
    return "#" * shape.before + "." + "#" * (shape.after + 4)


class _Writer:
    """Goes through the pattern, and through the number's digits as the pattern comes to them."""

    def __init__(
        self,
        shape: NumberPattern,
        number: str,
        *,
        is_negative: bool,
        roman: str = "",
        spaces: int = 0,
        before: int = 0,
        after: int = 0,
    ) -> None:
        self.flags = set(shape.flags)
        self.shape = shape
        self.number = number
        self.roman = roman
        self.sign = "-" if is_negative else "+"
        self.spaces = spaces
        self.before = before
        self.after = shape.after
        self.is_filling = "FM" in self.flags
        self.sign_place = shape.sign_place
        self.at = 0
        self.current = 0
        self.is_in_number = False
        self.out: list[str] = []
        self.has_sign = self._needs_no_sign()
        self.last = self._last_relevant(shape)
        self.count = after + before - 1 + (0 if self.has_sign or spaces else 1)

    def _needs_no_sign(self) -> bool:
        if self.flags & {"MI", "PL"}:
            return not ("PL" in self.flags and "MI" not in self.flags)
        if self.sign != "-" and self.is_filling:
            self.flags.discard("PR")
        if self.sign_place == "before" and self.before == self.shape.before_sign:
            self.sign_place = "after"
        return self.sign == "+" and self.is_filling and "S" not in self.flags

    def _last_relevant(self, shape: NumberPattern) -> int | None:
        """With FM, the last digit after the point that is not a zero; the point if all are."""
        point = self.number.find(".")
        if not (self.is_filling and "." in self.flags) or point < 0:
            return None
        last = max(point, len(self.number.rstrip("0")) - 1)
        if shape.zero_end > self.spaces:
            last = max(last, min(len(self.number) - 1, shape.zero_end - self.spaces))
        return last

    def write(self) -> str:
        for node in paced(self.shape.nodes):
            if node.keyword:
                self._keyword(node.keyword)
            else:
                self.out.append(node.text)
        return "".join(self.out).partition(_END)[0]

    def _keyword(self, word: str) -> None:
        match word.upper():
            case "9" | "0" | "." | "D" as key:
                if not self.roman:
                    self._place(is_zero=key == "0")
            case "," | "G":
                if self.is_in_number:
                    self.out.append(",")
                elif not self.is_filling:
                    self.out.append(" ")
            case "L":
                self.out.append(" ")
            case "RN":
                text = self.roman if word.isupper() or "#" in self.roman else self.roman.lower()
                self.out.append(text if self.is_filling else text.rjust(15))
            case "TH":
                is_plain = not self.roman and self.sign == "+" and "." not in self.flags
                if is_plain and self.number[:1] != "#":
                    if not self.number[-1:].isdigit():
                        raise InvalidText(f'"{self.number}" is not a number')
                    self.out.append(ordinal(self.number, is_upper=word.isupper()))
            case "MI":
                self._sign_or_space("-")
            case "PL":
                self._sign_or_space("+")
            case "SG":
                self.out.append(self.sign)

    def _sign_or_space(self, wanted: str) -> None:
        if self.sign == wanted:
            self.out.append(wanted)
        elif not self.is_filling:
            self.out.append(" ")

    def _is_leading_zero(self) -> bool:
        """Whether the zero before the point is left out: '0.1' by '9.9' begins with a space."""
        return self.shape.zero_start is None and self.at == 0 and self.number[:1] == "0" and self.after != 0

    def _ends_at_point(self) -> bool:
        return self.last is not None and self.number[self.last] == "."

    def _place(self, *, is_zero: bool) -> None:
        self.is_in_number = False
        start = self.shape.zero_start
        is_begun = self.current >= self.spaces or start == self.current
        if not self.has_sign and is_begun and (not self._is_leading_zero() or self._ends_at_point()):
            self._write_sign()
        if self.current < self.spaces and (start is None or start > self.current):
            if not self.is_filling:
                self.out.append(" ")
        elif self.current < self.spaces:
            self.out.append("0")
            self.is_in_number = True
        else:
            self._write_digit(is_zero=is_zero)
            self.at = min(self.at + 1, len(self.number))
        self._write_end()
        self.current += 1

    def _write_sign(self) -> None:
        if "S" in self.flags:
            if self.sign_place == "before":
                self.out.append(self.sign)
                self.has_sign = True
            return
        if "PR" in self.flags:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "-":
            self.out.append("-")
        elif not self.is_filling:
            self.out.append(" ")
        self.has_sign = True

    def _write_digit(self, *, is_zero: bool) -> None:
        each = self.number[self.at : self.at + 1]
        if each == ".":
            self.out.append(".")
        elif self.last is not None and self.at > self.last and not is_zero:
            return
        elif self._is_leading_zero():
            if not self.is_filling:
                self.out.append(" ")
            elif self._ends_at_point():
                self.out.append("0")
        else:
            self.out.append(each or _END)
            self.is_in_number = True

    def _write_end(self) -> None:
        end = self.count + bool(self.spaces) + ("." in self.flags)
        if self.last is not None and self.last == self.at:
            end = self.current
        if self.current + 1 != end:
            return
        if self.has_sign and "PR" in self.flags:
            self.out.append(" " if self.sign == "+" else ">")
        elif "S" in self.flags and self.sign_place == "after":
            self.out.append(self.sign)
