"""float4 and float8: read to the nearest, written with the fewest digits that tell them apart.

A number is written with the fewest digits that lie strictly between the middles to its neighbours,
as PostgreSQL's Ryu does; Python's repr accepts the very middle. A float4 is a Python float that 32
bits can hold. What is too great or too small for its type is out of range (22003).

Walk: `expr.types.type_names` makes the types; `expr.functions.arithmetic` and `expr.types.casts` use
`to_float4`.
"""

import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from math import copysign, inf, isinf, nextafter
from typing import Any

from tenure.base.errors import InvalidText, OutOfRange
from tenure.expr.types.big_numbers import EXACT
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.numbers import SPACE
from tenure.expr.types.text_slices import found_in

_NAMES = {4: "real", 8: "double precision"}
_SINGLE, _DOUBLE, _BITS = struct.Struct("<f"), struct.Struct("<d"), struct.Struct("<Q")
_FLOAT = re.compile(
    r"""[+-]?(?:
      (?P<hex>0x)(?P<digits>[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?
    | (?P<decimal>[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?
    | inf(?:inity)? | nan(?:\([0-9a-z_]*\))?)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
"""As C's strtod reads them."""
_NOT_ZERO = re.compile("[1-9a-f]", re.IGNORECASE)


@dataclass(frozen=True)
class FloatType(Type):
    size: int

    category = "N"
    compares_natively = False

    @property
    def sql_name(self) -> str:
        return _NAMES[self.size]

    @property
    def key_is_exact(self) -> bool:
        """A key does not tell -0 from 0."""
        return False

    def comparable(self, value: float) -> Any:
        return (1, 0.0) if value != value else (0, value)

    def parse(self, text: str) -> float:
        stripped = text.strip(SPACE)
        found = _FLOAT.match(stripped)
        if found is None:
            raise self._invalid(text)
        number = found.group()
        value = _from_hex(number) if found["hex"] else float(number.partition("(")[0])
        if self.size == 4:
            value = _nearest_float4(value, number)
        digits = found["digits"] or found["decimal"]
        if digits and (isinf(value) or (value == 0 and found_in(_NOT_ZERO, digits))):
            raise OutOfRange(f'"{number}" is out of range for type {self.sql_name}')
        if len(number) != len(stripped):
            raise self._invalid(text)
        return value

    def _invalid(self, text: str) -> InvalidText:
        return InvalidText(f'invalid input syntax for type {self.sql_name}: "{text}"')

    def render(self, value: float) -> str:
        return float_text(value, self.size)

    def _accept(self, value: Datum) -> float:
        if type(value) is not float:
            raise self._refuse(value)
        return to_float4(value) if self.size == 4 else value


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return inf


def to_float4(value: float) -> float:
    """Rounds to 32 bits. Raises OutOfRange if that makes it infinite or zero."""
    try:
        rounded: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        raise OutOfRange("value out of range: overflow") from None
    if rounded == 0 and value != 0:
        raise OutOfRange("value out of range: underflow")
    return rounded


def _nearest_float4(value: float, text: str) -> float:
    """Rounds text to 32 bits at once: by way of 64 bits, a middle could be rounded twice."""
    try:
        (nearest,) = _SINGLE.unpack(_SINGLE.pack(value))
    except OverflowError:
        return copysign(inf, value)
    if _is_between_singles(value) and "x" not in text.lower():
        exact, middle = EXACT.create_decimal(text), Decimal(value)
        if exact != middle:
            nudged = nextafter(value, inf if exact > middle else -inf)
            (nearest,) = _SINGLE.unpack(_SINGLE.pack(nudged))
    return float(nearest)


def float_text(value: float, size: int) -> str:
    if value != value:
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0" if copysign(1, value) < 0 else "0"
    digits = _digits4(value) if size == 4 else _digits8(value)
    mantissa, _, exponent_text = digits.partition("e")
    exponent = int(exponent_text)
    figures = mantissa.lstrip("-").replace(".", "").rstrip("0") or "0"
    sign = "-" if mantissa.startswith("-") else ""
    if exponent < -4 or exponent >= (6 if size == 4 else 15):
        point = "." if len(figures) > 1 else ""
        return f"{sign}{figures[0]}{point}{figures[1:]}e{exponent:+03d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{figures}"
    whole, fraction = figures[: exponent + 1].ljust(exponent + 1, "0"), figures[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def _digits8(value: float) -> str:
    # repr gives the fewest digits; only whole numbers beyond 2^53 can have them on the very middle.
    shortest = Decimal(repr(value))
    if abs(value) >= 2**53 and _is_middle(shortest, value):
        places = len(shortest.normalize(EXACT).as_tuple().digits)
        while float(longer := f"{value:.{places}e}") != value or _is_middle(Decimal(longer), value):
            places += 1
        return longer
    text = f"{shortest:e}"
    return text if "e" in text else text + "e0"


def _is_middle(written: Decimal, value: float) -> bool:
    neighbours = (nextafter(value, inf), nextafter(value, -inf))
    return any(2 * int(written) == int(value) + int(each) for each in neighbours if not isinf(each))


def _digits4(value: float) -> str:
    for places in range(9):
        text = f"{value:.{places}e}"
        # Above a power of two the floats lie further apart than below: the next number up may be nearer.
        further = Decimal(text).copy_abs() + Decimal((0, (1,), int(text.partition("e")[2]) - places))
        for each in (text, f"{further.copy_sign(Decimal(text)):.{places}e}"):
            if _nearest_float4(float(each), each) == value and not _is_single_middle(each):
                return each
    return text


def _is_single_middle(text: str) -> bool:
    """Whether it lies exactly between two floats of 32 bits."""
    value = float(text)
    return _is_between_singles(value) and Decimal(text) == Decimal(value)


def _is_between_singles(value: float) -> bool:
    (bits,) = _BITS.unpack(_DOUBLE.pack(value))
    return bool(bits & (1 << 29) - 1 == 1 << 28)
