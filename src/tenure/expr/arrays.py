"""Arrays: tuples, nested for more dimensions, all sides of a dimension equally long.

    '{1,2,NULL}'      (1, 2, None)
    '{{a,b},{c,d}}'   (("a", "b"), ("c", "d"))
    '{}'              ()

Arrays compare by their elements in order, then by the number of elements, of dimensions and of
each dimension; NULL among the elements is greatest. Lower bounds other than one are refused.

Walk: `expr.types` makes one per element type; `expr.array_functions` works on the values.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from tenure.expr.datatype import Datum, Type
from tenure.expr.errors import ArraySizesDiffer, InvalidText, LimitExceeded, NotSupported

DIMENSIONS_MAX = 6
"""PostgreSQL's."""

_SPACE = " \t\n\v\f\r"


@dataclass(frozen=True)
class ArrayOf(Type):
    element: Type

    category = "A"
    compares_natively = False

    @property
    def has_order(self) -> bool:  # type: ignore[override]
        return self.element.has_order

    @property
    def key_is_exact(self) -> bool:
        return self.element.key_is_exact

    @property
    def family(self) -> str:
        return self.element.family + "[]"

    @property
    def sql_name(self) -> str:
        return self.element.sql_name + "[]"

    def comparable(self, value: Datum) -> Any:
        """NULL sorts last among elements; then fewer elements, then fewer dimensions, come first."""
        of = self.element.comparable
        flat = tuple((True, 0) if each is None else (False, of(each)) for each in flatten(value))
        sides = dimensions(value)
        return flat, len(sides), sides

    def parse(self, text: str) -> Datum:
        return self.parse_in(text, UTC)

    def render(self, value: Datum) -> str:
        return "{" + ",".join([self._render_member(each) for each in value]) + "}"

    @property
    def follows_zone(self) -> bool:
        return self.element.follows_zone

    def parse_in(self, text: str, zone: tzinfo) -> Datum:
        if _PLAIN.fullmatch(text):
            parse = self.element.parse_in
            return tuple([None if each in _NULLS else parse(each, zone) for each in text[1:-1].split(",")])
        return _Reader(text, self, zone).read()

    def render_in(self, value: Datum, zone: tzinfo) -> str:
        if not self.follows_zone:
            return self.render(value)
        return "{" + ",".join([self._render_member(each, zone) for each in value]) + "}"

    def map(self, value: Datum, function: Callable[[Datum], Datum]) -> Datum:
        """Applies a function to every element that is not NULL, whatever the dimensions."""
        if isinstance(value, tuple):
            return tuple(self.map(each, function) for each in value)
        return None if value is None else function(value)

    def truncate(self, value: Datum) -> Datum:
        return None if value is None else self.map(value, self.element.truncate)

    def _accept(self, value: Datum) -> Datum:
        if not isinstance(value, tuple | list):
            raise self._refuse(value)
        accepted = self.map(_as_tuples(value), self.element.accept)
        check_shape(accepted)
        return accepted

    def _key(self, value: Datum) -> Any:
        flat = tuple(self.element.key(each) for each in flatten(value))
        sides = dimensions(value)
        return (flat,) if len(sides) < 2 else (flat, len(sides), *sides)

    def _from_key(self, key: Any) -> Datum:
        flat = tuple(self.element.from_key(each) for each in key[0])
        return fold(flat, key[2:])

    def _pack(self, value: Datum) -> Any:
        flat = [self.element.pack(each) for each in flatten(value)]
        sides = dimensions(value)
        return [None, list(sides), flat] if len(sides) > 1 else [len(flat), *flat]

    def _unpack(self, packed: Any) -> Datum:
        if packed[0] is None:
            return fold(tuple(self.element.unpack(each) for each in packed[2]), tuple(packed[1]))
        return tuple(self.element.unpack(each) for each in packed[1:])

    def _render_member(self, value: Datum, zone: tzinfo = UTC) -> str:
        if isinstance(value, tuple):
            return self.render_in(value, zone)
        return "NULL" if value is None else _quote(self.element.render_in(value, zone))


_PLAIN = re.compile(r"\{[^\s{}\",\\]+(?:,[^\s{}\",\\]+)*+\}", re.ASCII)
"""One dimension without quotes, escapes and spaces: cut at its commas, many times faster than read."""
_NULLS = frozenset(a + b + c + d for a in "nN" for b in "uU" for c in "lL" for d in "lL")


def flatten(value: Datum) -> Iterator[Datum]:
    for each in value:
        if isinstance(each, tuple):
            yield from flatten(each)
        else:
            yield each


def fold(flat: tuple[Datum, ...], sides: tuple[int, ...]) -> tuple[Datum, ...]:
    """Puts the elements in order into an array of these dimensions."""
    if len(sides) < 2:
        return flat
    step = len(flat) // sides[0]
    return tuple(fold(flat[i * step : (i + 1) * step], sides[1:]) for i in range(sides[0]))


def dimensions(value: Datum) -> tuple[int, ...]:
    """() of an empty array, which has none."""
    if not isinstance(value, tuple) or not value:
        return ()
    return (len(value), *dimensions(value[0]))


def check_shape(value: Datum) -> None:
    """Raises ArraySizesDiffer unless all sides of a dimension are equally long."""
    sides = dimensions(value)
    if len(sides) > DIMENSIONS_MAX:
        raise LimitExceeded(
            f"number of array dimensions ({len(sides)}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
        )
    if value and not _has_shape(value, sides):
        raise ArraySizesDiffer("multidimensional arrays must have sub-arrays with matching dimensions")


def _has_shape(value: Datum, sides: tuple[int, ...]) -> bool:
    if not sides:
        return not isinstance(value, tuple)
    return (
        isinstance(value, tuple)
        and len(value) == sides[0]
        and all(_has_shape(each, sides[1:]) for each in value)
    )


def _as_tuples(value: Datum) -> Datum:
    return tuple(_as_tuples(each) for each in value) if isinstance(value, tuple | list) else value


def _quote(text: str) -> str:
    is_plain = (
        text and text.upper() != "NULL" and not any(each in '{},"\\' or each in _SPACE for each in text)
    )
    if is_plain:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Reader:
    """Reads an array's text, one pass from left to right."""

    def __init__(self, text: str, kind: ArrayOf, zone: tzinfo) -> None:
        self.text = text
        self.kind = kind
        self.zone = zone
        self.position = 0

    def read(self) -> Datum:
        self._skip()
        if self.text.startswith("[", self.position):
            raise NotSupported("arrays with lower bounds of their own are not supported")
        if not self.text.startswith("{", self.position):
            raise self._malformed()
        value = self._array(1)
        self._skip()
        if self.position != len(self.text):
            raise self._malformed()
        if not any(True for _ in flatten(value)):
            if not _is_hollow(value):
                raise self._malformed()
            return ()
        sides = dimensions(value)
        if not _has_shape(value, sides):
            raise self._malformed()
        return self._without_marks(value)

    def _array(self, depth: int) -> Datum:
        if depth > DIMENSIONS_MAX:
            raise LimitExceeded(
                f"number of array dimensions ({depth}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
            )
        self.position += 1
        members: list[Datum] = []
        self._skip()
        if self._take("}"):
            return ()
        while True:
            self._skip()
            if self.text.startswith("{", self.position):
                members.append(self._array(depth + 1))
            else:
                members.append(self._element())
            self._skip()
            if self._take("}"):
                return tuple(members)
            if not self._take(","):
                raise self._malformed()

    def _element(self) -> Datum:
        start = self.position
        is_quoted = self._take('"')
        text = self._quoted() if is_quoted else self._bare()
        if not text and not is_quoted:
            raise self._malformed()
        # What is wrong with the array comes before what is wrong with an element.
        is_null = not is_quoted and text.upper() == "NULL" and "\\" not in self.text[start : self.position]
        self._skip()
        if self.text[self.position : self.position + 1] not in (",", "}"):
            raise self._malformed()
        return _Mark(None if is_null else self.kind.element.parse_in(text, self.zone))

    def _quoted(self) -> str:
        taken: list[str] = []
        while self.position < len(self.text):
            each = self.text[self.position]
            self.position += 1
            if each == '"':
                return "".join(taken)
            if each == "\\":
                each = self._next()
            taken.append(each)
        raise self._malformed()

    def _bare(self) -> str:
        taken: list[str] = []
        length = 0  # without trailing spaces that were not escaped
        while self.position < len(self.text) and self.text[self.position] not in "{},":
            each = self.text[self.position]
            self.position += 1
            if each == '"':
                raise self._malformed()
            is_escaped = each == "\\"
            taken.append(self._next() if is_escaped else each)
            if is_escaped or each not in _SPACE:
                length = len(taken)
        return "".join(taken[:length])

    def _next(self) -> str:
        if self.position >= len(self.text):
            raise self._malformed()
        self.position += 1
        return self.text[self.position - 1]

    def _take(self, character: str) -> bool:
        if self.text.startswith(character, self.position):
            self.position += 1
            return True
        return False

    def _skip(self) -> None:
        while self.position < len(self.text) and self.text[self.position] in _SPACE:
            self.position += 1

    def _without_marks(self, value: Datum) -> Datum:
        if isinstance(value, tuple):
            return tuple(self._without_marks(each) for each in value)
        return value.value

    def _malformed(self) -> InvalidText:
        return InvalidText(f'malformed array literal: "{self.text}"')


@dataclass(frozen=True, slots=True)
class _Mark:
    """An element while the array is read, so that it is never taken for a dimension."""

    value: Datum


def _is_hollow(value: Datum) -> bool:
    """Whether all of it is braces, at any depth: PostgreSQL reads '{{},{}}' as an empty array."""
    return isinstance(value, tuple) and all(_is_hollow(each) for each in value)
