"""Arrays: tuples, nested for more dimensions, all sides of a dimension equally long.

    '{1,2,NULL}'      (1, 2, None)
    '{{a,b},{c,d}}'   (("a", "b"), ("c", "d"))
    '{}'              ()

Arrays compare by their elements in order, then by the number of elements, of dimensions and of
each dimension; NULL among the elements is greatest. Lower bounds other than one are refused.

Walk: `expr.types.type_names` makes one per element type; `expr.types.array_text` reads the texts;
`expr.functions.array_functions` works on the values.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from tenure.base.errors import ArraySizesDiffer, LimitExceeded
from tenure.base.interruptible import paced
from tenure.expr.types.array_text import DIMENSIONS_MAX, NULLS, fold, read_array
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.text_slices import SLICE, found_in, replaced, split
from tenure.expr.types.value_lengths import join_all


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
        return "{" + str(join_all(",", [self._render_member(each) for each in paced(value)])) + "}"

    @property
    def follows_zone(self) -> bool:
        return self.element.follows_zone

    def parse_in(self, text: str, zone: tzinfo) -> Datum:
        if (items := _plain_parts(text)) is not None:
            parse = self.element.parse_in
            return tuple([None if each in NULLS else parse(each, zone) for each in paced(items)])
        return read_array(text, lambda each: self.element.parse_in(each, zone))

    def render_in(self, value: Datum, zone: tzinfo) -> str:
        if not self.follows_zone:
            return self.render(value)
        return "{" + str(join_all(",", [self._render_member(each, zone) for each in paced(value)])) + "}"

    def map(self, value: Datum, function: Callable[[Datum], Datum]) -> Datum:
        """Applies a function to every element that is not NULL, in all dimensions."""
        if isinstance(value, tuple):
            return tuple([self.map(each, function) for each in paced(value)])
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
        flat = tuple([self.element.from_key(each) for each in paced(key[0])])
        return fold(flat, key[2:])

    def _pack(self, value: Datum) -> Any:
        flat = [self.element.pack(each) for each in flatten(value)]
        sides = dimensions(value)
        return [None, list(sides), flat] if len(sides) > 1 else [len(flat), *flat]

    def _unpack(self, packed: Any) -> Datum:
        if packed[0] is None:
            flat = tuple([self.element.unpack(each) for each in paced(packed[2])])
            return fold(flat, tuple(packed[1]))
        return tuple([self.element.unpack(each) for each in paced(packed[1:])])

    def _render_member(self, value: Datum, zone: tzinfo = UTC) -> str:
        if isinstance(value, tuple):
            return self.render_in(value, zone)
        return "NULL" if value is None else _quote(self.element.render_in(value, zone))


_PLAIN = re.compile(r"\{[^\s{}\",\\]+(?:,[^\s{}\",\\]+)*+\}", re.ASCII)
"""One dimension without quotes, escapes and spaces: splitting it at commas is much faster than parsing."""
_UNPLAIN = re.compile(r"[\s{}\"\\]", re.ASCII)


def _plain_parts(text: str) -> list[str] | None:
    """The elements of a text that matches `_PLAIN`; None for another text."""
    if len(text) <= SLICE:
        return text[1:-1].split(",") if _PLAIN.fullmatch(text) else None
    inside = text[1:-1]
    if text[0] != "{" or text[-1] != "}" or found_in(_UNPLAIN, inside):
        return None
    items = split(inside, ",")
    return items if all(items) else None


def flatten(value: Datum) -> Iterator[Datum]:
    for each in paced(value):
        if isinstance(each, tuple):
            yield from flatten(each)
        else:
            yield each


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
        and all(_has_shape(each, sides[1:]) for each in paced(value))
    )


def _as_tuples(value: Datum) -> Datum:
    return tuple([_as_tuples(each) for each in paced(value)]) if isinstance(value, tuple | list) else value


_QUOTED = re.compile(r"[{},\"\\ \t\n\v\f\r]")


def _quote(text: str) -> str:
    if text and text.upper() != "NULL" and not found_in(_QUOTED, text):
        return text
    return '"' + replaced(replaced(text, "\\", "\\\\"), '"', '\\"') + '"'
