"""Text made of values of any type: ||, concat, format, and values quoted for SQL.

Values are written as their type writes them, a timestamptz in the session's time zone.

    format('%I = %L', 'a b', 1)     "a b" = '1'
    format('%2$s %1$-5s|', 1, 2)    2 1    |

Walk: `expr.function_table` lists these.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from functools import partial

from tenure.base.errors import InvalidParameter, InvalidText, NullNotAllowed, OutOfRange
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.types.casts import ASSIGNMENT, cast_function, zoned_cast
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.quoting import quote_ident, quote_literal
from tenure.expr.types.strings import TEXT
from tenure.expr.types.text_slices import substituted
from tenure.expr.types.value_lengths import check_length, join_all, joined

Write = Callable[[Datum, tzinfo], str]


def functions() -> Iterator[Function]:
    yield Function("||", ("text", "text"), "text", joined)
    yield Function("||", ("bytea", "bytea"), "bytea", joined)
    of_any = partial(Function, volatility=Volatility.STABLE, wants_types=True, wants_context=True)
    for pair in (("text", "anynonarray"), ("anynonarray", "text")):
        yield of_any("||", pair, "text", _join_two)
    of_many = partial(of_any, is_strict=False, is_variadic=True)
    yield of_many("concat", ("any",), "text", _concat)
    yield of_many("concat_ws", ("text", "any"), "text", _concat_ws)
    yield of_many("format", ("text", "any"), "text", _format)
    yield of_any("format", ("text",), "text", _format)
    yield function("quote_ident", "text -> text", quote_ident)
    yield function("quote_literal", "text -> text", quote_literal)
    yield of_any("quote_literal", ("anyelement",), "text", partial(_quoted, null=None))
    yield Function("quote_nullable", ("text",), "text", _quote_nullable, is_strict=False)
    yield of_any("quote_nullable", ("anyelement",), "text", partial(_quoted, null="NULL"), is_strict=False)


def _as_text(kind: Type) -> Write:
    """As a cast to text writes it: a boolean as true or false."""
    zoned = zoned_cast(kind, TEXT, ASSIGNMENT)
    if zoned is not None:
        return zoned
    convert = cast_function(kind, TEXT, ASSIGNMENT)
    return (lambda value, zone: value) if convert is None else (lambda value, zone: convert(value))


def _join_two(left: Type, right: Type) -> Callable[[Context, Datum, Datum], str]:
    to_left, to_right = _as_text(left), _as_text(right)
    return lambda context, a, b: joined(to_left(a, context.zone), to_right(b, context.zone))


def _concat(*types: Type) -> Callable[..., str]:
    outputs = [each.render_in for each in types]

    def concat(context: Context, *values: Datum) -> str:
        return str(join_all("", _written(outputs, values, context.zone)))

    return concat


def _concat_ws(separator: Type, *types: Type) -> Callable[..., str | None]:
    outputs = [each.render_in for each in types]

    def concat(context: Context, between: str | None, *values: Datum) -> str | None:
        if between is None:
            return None
        return str(join_all(between, _written(outputs, values, context.zone)))

    return concat


def _written(outputs: Sequence[Write], values: Sequence[Datum], zone: tzinfo) -> list[str]:
    """Without the NULLs."""
    return [write(value, zone) for write, value in zip(outputs, values, strict=True) if value is not None]


def _quoted(kind: Type, *, null: str | None) -> Callable[[Context, Datum], str | None]:
    write = _as_text(kind)
    return lambda context, value: null if value is None else quote_literal(write(value, context.zone))


def _quote_nullable(text: str | None) -> str:
    return "NULL" if text is None else quote_literal(text)


# format

_SPECIFIER = re.compile(r"%(?:(\d+)\$)?(-*)(?:\*(?:(\d+)\$)?|(\d+))?(.?)", re.DOTALL)
_STAR = re.compile(r"%(?:\d+\$)?-*\*")


def _format(pattern: Type, *types: Type) -> Callable[..., str | None]:
    outputs = [each.render_in for each in types]

    def formatted(context: Context, text: str | None, *values: Datum) -> str | None:
        if text is None:
            return None
        texts = [
            None if value is None else write(value, context.zone)
            for write, value in zip(outputs, values, strict=True)
        ]
        return _Formatter(texts).format(text)

    return formatted


class _Formatter:
    def __init__(self, texts: Sequence[str | None]) -> None:
        self.texts = texts
        self.last = 0
        self._size = 0

    def format(self, pattern: str) -> str:
        return substituted(_SPECIFIER, self._one, pattern)

    def _one(self, found: re.Match[str]) -> str:
        position, minus, star, digits, letter = found.groups()
        if found.group() == "%%":
            return "%"
        if not letter:
            raise InvalidParameter("unterminated format() type specifier")
        width = self._width(found, star, digits)
        if letter not in "sIL":
            raise InvalidParameter(f'unrecognized format() type specifier "{letter}"')
        text = self._written(letter, self._take(position))
        self._size += max(abs(width), len(text))
        check_length(self._size)
        return text.ljust(abs(width)) if minus or width < 0 else text.rjust(width)

    def _width(self, found: re.Match[str], star: str | None, digits: str | None) -> int:
        if not _STAR.match(found.group()):
            return self._number(digits or "0")
        width = self._take(star)
        if width is None:
            return 0
        try:
            number = int(width)
        except ValueError:
            raise InvalidText(f'invalid input syntax for type integer: "{width}"') from None
        if number == -(1 << 31):
            raise OutOfRange("number is out of range")
        return number

    def _take(self, position: str | None) -> str | None:
        number = self.last + 1 if position is None else self._number(position)
        if number == 0:
            raise InvalidParameter("format specifies argument 0, but arguments are numbered from 1")
        if number > len(self.texts):
            raise InvalidParameter("too few arguments for format()")
        self.last = number
        return self.texts[number - 1]

    def _number(self, digits: str) -> int:
        if len(digits) > 9:
            raise OutOfRange("number is out of range")
        return int(digits)

    def _written(self, letter: str, text: str | None) -> str:
        if letter == "I":
            if text is None:
                raise NullNotAllowed("null values cannot be formatted as an SQL identifier")
            return quote_ident(text)
        if letter == "L":
            return _quote_nullable(text)
        return text or ""
