"""Arrays in text, as PostgreSQL reads them.

    {1,2,NULL}   {{"a b",c},{d,e}}   [1:2]={1,2}

Braces, delimiters and elements are read from left to right. The first fault is reported, of the array's form
or of an element. A backslash takes the next character literally; NULL is a NULL only without quotes and
backslashes.

Lower bounds other than one are refused (0A000).

Walk: `expr.types.arrays` calls `read_array`.
"""

import re
from collections.abc import Callable
from itertools import count
from typing import Any

from tenure.base.errors import InvalidText, LimitExceeded, NotSupported, SubscriptError, UserError
from tenure.base.interruptible import STEPS_PER_CHECK, check_now, paced, paced_all
from tenure.expr.types.text_slices import substituted

DIMENSIONS_MAX = 6
"""PostgreSQL's."""
BOUND_MAX = 2**31 - 1
SIZE_MAX = 134_217_727
NULLS = frozenset(a + b + c + d for a in "nN" for b in "uU" for c in "lL" for d in "lL")

_SPACE = " \t\n\v\f\r"
_BLANK = re.compile(r"[ \t\n\v\f\r]*+")
_IN_QUOTES = re.compile(r'["\\]')
_IN_BARE = re.compile(r'["\\{},]')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BOUND = re.compile(r"[+-]?\d+", re.ASCII)


def read_array(text: str, parse: Callable[[str], Any]) -> tuple[Any, ...]:
    """Elements that are not NULL are read by `parse`."""
    return _Reader(text, parse).read()


def fold(flat: tuple[Any, ...], sides: tuple[int, ...]) -> tuple[Any, ...]:
    """Puts the elements in order into an array of these dimensions."""
    if len(sides) < 2:
        return flat
    step = len(flat) // sides[0]
    if step >= STEPS_PER_CHECK:
        check_now()
    return tuple([fold(flat[i * step : (i + 1) * step], sides[1:]) for i in paced(range(sides[0]))])


class _Reader:
    def __init__(self, text: str, parse: Callable[[str], Any]) -> None:
        self.text = text
        self.parse = parse
        self.position = 0
        self.elements: list[Any] = []
        self.lows: list[int] = []
        self.sides: list[int] = []
        """By dimension, how many members each of its arrays has; -1 until the first of them has ended."""
        self.counts: list[int] = []
        """The number of members so far, of each array that is still open."""
        self.has_fixed_depth = self.expects_delimiter = False

    def read(self) -> tuple[Any, ...]:
        self._bounds()
        if not self.sides and not self._is_next("{"):
            raise self._malformed('Array value must start with "{" or dimension information.')
        if self.sides:
            self._take("=", 'Missing "=" after array dimensions.')
            self._skip()
            if not self._is_next("{"):
                raise self._malformed('Array contents must start with "{".')
        has_bounds = self.has_fixed_depth = bool(self.sides)
        for _ in paced_all(count()):
            self._token()
            if not self.counts:
                break
        self._skip()
        if self.position != len(self.text):
            raise self._malformed("Junk after closing right brace.")
        if has_bounds and self.elements and any(low != 1 for low in self.lows):
            raise NotSupported("arrays with lower bounds of their own are not supported")
        return fold(tuple(self.elements), tuple(self.sides)) if self.elements else ()

    def _bounds(self) -> None:
        self._skip()
        while self._is_next("["):
            self.position += 1
            if len(self.sides) == DIMENSIONS_MAX:
                raise _too_many_dimensions()
            high = self._bound('"[" must introduce explicitly-specified array dimensions.')
            low = 1
            if self._is_next(":"):
                self.position += 1
                low, high = high, self._bound("Missing array dimension value.")
            self._take("]", 'Missing "]" after array dimensions.')
            if high < low:
                raise SubscriptError("upper bound cannot be less than lower bound")
            if high == BOUND_MAX:
                raise LimitExceeded(f"array upper bound is too large: {high}")
            if high - low + 1 > BOUND_MAX:
                raise LimitExceeded(f"array size exceeds the maximum allowed ({SIZE_MAX})")
            self.lows.append(low)
            self.sides.append(high - low + 1)
            self._skip()

    def _bound(self, otherwise: str) -> int:
        found = _BOUND.match(self.text, self.position)
        if found is None:
            raise self._malformed(otherwise)
        digits = found[0].lstrip("+-").lstrip("0")
        # Python refuses to read thousands of digits.
        bound = int(digits[:11] or 0) * (-1 if found[0][0] == "-" else 1)
        if not -BOUND_MAX - 1 <= bound <= BOUND_MAX:
            raise LimitExceeded("array bound is out of integer range")
        self.position = found.end()
        return bound

    def _token(self) -> None:
        self._skip()
        sign = self.text[self.position : self.position + 1]
        if sign == "{":
            self._open()
        elif sign == "}":
            self._close()
        elif sign == ",":
            if not self.expects_delimiter:
                raise self._unexpected(sign)
            self.position += 1
            self.expects_delimiter = False
        elif sign:
            self._element()
        else:
            raise self._ends()

    def _open(self) -> None:
        if self.expects_delimiter:
            raise self._unexpected("{")
        if len(self.counts) == DIMENSIONS_MAX:
            raise _too_many_dimensions()
        self.position += 1
        self.counts.append(0)
        if len(self.counts) > len(self.sides):
            if self.has_fixed_depth:
                raise self._uneven()
            self.sides.append(-1)

    def _close(self) -> None:
        if self.counts[-1] and not self.expects_delimiter:
            raise self._unexpected("}")
        self.position += 1
        count = self.counts.pop()
        if self.counts:
            self.counts[-1] += 1
        depth = len(self.counts)
        if self.sides[depth] < 0:
            self.sides[depth] = count
        elif self.sides[depth] != count:
            raise self._uneven()
        self.expects_delimiter = True

    def _element(self) -> None:
        is_quoted = self._is_next('"')
        text = self._quoted() if is_quoted else self._bare()
        if self.expects_delimiter:
            raise self._malformed("Unexpected array element.")
        is_null = not is_quoted and text in NULLS
        self.elements.append(None if is_null else self.parse(_unescaped(text)))
        self.has_fixed_depth = True
        if len(self.counts) != len(self.sides):
            raise self._uneven()
        self.counts[-1] += 1
        self.expects_delimiter = True

    def _quoted(self) -> str:
        start = self.position + 1
        end = self._sign_from(start, _IN_QUOTES)
        after = self._after_blank(end + 1)
        if after >= len(self.text):
            raise self._ends()
        if self.text[after] not in ",{}":
            raise self._malformed("Incorrectly quoted array element.")
        self.position = after
        return self.text[start:end]

    def _bare(self) -> str:
        start = self.position
        end = self._sign_from(start, _IN_BARE)
        sign = self.text[end : end + 1]
        if sign == "{":
            raise self._unexpected(sign)
        if sign == '"':
            raise self._malformed("Incorrectly quoted array element.")
        if sign not in (",", "}"):
            raise self._ends()
        self.position = end
        return _without_blank_end(self.text[start:end])

    def _sign_from(self, at: int, signs: re.Pattern[str]) -> int:
        """The position of the first of these characters that is not escaped; the end if there is none."""
        for _ in paced_all(count()):
            found = signs.search(self.text, at)
            if found is None:
                return len(self.text)
            if found[0] != "\\":
                return found.start()
            if found.end() == len(self.text):
                return len(self.text)
            at = found.end() + 1
        raise AssertionError("an endless count has ended")

    def _after_blank(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        assert found is not None
        return found.end()

    def _is_next(self, character: str) -> bool:
        return self.text.startswith(character, self.position)

    def _take(self, character: str, otherwise: str) -> None:
        if not self._is_next(character):
            raise self._malformed(otherwise)
        self.position += 1

    def _skip(self) -> None:
        self.position = self._after_blank(self.position)

    def _uneven(self) -> UserError:
        if self.lows:
            return self._malformed("Specified array dimensions do not match array contents.")
        return self._malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")

    def _unexpected(self, sign: str) -> UserError:
        return self._malformed(f'Unexpected "{sign}" character.')

    def _ends(self) -> UserError:
        return self._malformed("Unexpected end of input.")

    def _malformed(self, detail: str) -> UserError:
        return InvalidText(f'malformed array literal: "{self.text}"', detail=detail)


def _unescaped(text: str) -> str:
    return substituted(_ESCAPE, lambda found: found[1], text) if "\\" in text else text


def _without_blank_end(text: str) -> str:
    """Strips spaces, but not an escaped one."""
    kept = text.rstrip(_SPACE)
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return text[: len(kept) + backslashes % 2]


def _too_many_dimensions() -> UserError:
    return LimitExceeded(f"number of array dimensions exceeds the maximum allowed ({DIMENSIONS_MAX})")
