"""json, which keeps its text, and jsonb, which is stored parsed.

    Json    the text as it was written, spaces, order and doubles included; no order, no equality
    Jsonb   null, bool, Decimal, str, tuple, or JsonObject: keys once each (the last one counts), the
            shorter ones first

jsonb's order is PostgreSQL's: by kind (null, string, number, boolean, array, object), by number of
members, then member by member; an empty array at the top comes before everything. Its key is that
comparison written out: a flat row of marks, counts and scalars.

Walk: `expr.types.type_names` makes the types; `expr.functions.json_functions` works on the values.
"""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from tenure.base.errors import InvalidText, TooComplex
from tenure.base.interruptible import check_now, paced
from tenure.base.memory import LARGE_BYTES
from tenure.expr.types.big_numbers import EXACT
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.json_faults import fault
from tenure.expr.types.json_reading import Reader
from tenure.expr.types.numbers import numeric_text, tidy
from tenure.expr.types.strings import UNFIT, check_characters
from tenure.expr.types.text_slices import SLICE, found_in, ordered, slices
from tenure.expr.types.value_lengths import charge_elements, join_all

DEPTH_MAX = 250
"""Members within members of a jsonb. PostgreSQL's limit is its stack; this keeps clear of Python's."""

_NULL, _STRING, _NUMBER, _BOOL, _ARRAY, _OBJECT = range(6)


@dataclass(frozen=True, slots=True)
class Json:
    text: str


class JsonObject(tuple[tuple[str, Any], ...]):
    """(key, value) pairs in PostgreSQL's order of keys: by length in bytes, then by the bytes."""

    __slots__ = ()

    def get(self, key: str) -> "Jsonb | None":
        return next((Jsonb(value) for name, value in self if name == key), None)


@dataclass(frozen=True, slots=True)
class Jsonb:
    value: Any


def object_of(pairs: list[tuple[str, Any]] | dict[str, Any]) -> JsonObject:
    return JsonObject(ordered(list(dict(pairs).items()), lambda pair: _key_order(pair[0])))


def _key_order(key: str) -> tuple[int, bytes]:
    raw = key.encode(errors="surrogatepass")
    return len(raw), raw


@dataclass(frozen=True)
class JsonType(Type):
    has_order = False

    def parse(self, text: str) -> Json:
        _read_json(check_characters(text), _PLAIN, reads_escapes=False)
        return Json(text)

    def render(self, value: Json) -> str:
        return value.text

    def _accept(self, value: Datum) -> Json:
        if not isinstance(value, Json):
            raise self._refuse(value)
        return value

    def _pack(self, value: Json) -> str:
        return value.text

    def _unpack(self, packed: str) -> Json:
        return Json(packed)


@dataclass(frozen=True)
class JsonbType(Type):
    compares_natively = False

    @property
    def key_is_exact(self) -> bool:
        """A number's trailing zeros are not in a key."""
        return False

    def comparable(self, value: Jsonb) -> tuple[Any, ...]:
        return tuple(_flat_top(value.value))

    def parse(self, text: str) -> Jsonb:
        value = _read_json(check_characters(text), _EXACT)
        try:
            return Jsonb(_canonical(value))
        except InvalidText:
            raise fault(text, reads_escapes=True) from None

    def render(self, value: Jsonb) -> str:
        return jsonb_text(value.value)

    def _accept(self, value: Datum) -> Jsonb:
        if not isinstance(value, Jsonb):
            raise self._refuse(value)
        return value

    def _key(self, value: Jsonb) -> tuple[Any, ...]:
        return tuple(_flat_top(value.value))

    def _from_key(self, key: Any) -> Jsonb:
        tokens = list(reversed(key))
        if tokens.pop() == 1:
            return Jsonb(_unflatten_object(tokens))
        count, is_array = tokens.pop(), tokens.pop()
        members = tuple([_unflatten(tokens) for _ in paced(range(count))])
        return Jsonb(members if is_array else members[0])

    def _pack(self, value: Jsonb) -> str:
        return self.render(value)

    def _unpack(self, packed: str) -> Jsonb:
        return Jsonb(_canonical(_read_json(packed, _EXACT)))


def jsonb_text(value: Any) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return numeric_text(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, JsonObject):
        members = [f"{quoted(name)}: {jsonb_text(each)}" for name, each in paced(value)]
        return "{" + str(join_all(", ", members)) + "}"
    return "[" + str(join_all(", ", [jsonb_text(each) for each in paced(value)])) + "]"


def quoted(text: str) -> str:
    if len(text) <= SLICE:
        return json.dumps(text, ensure_ascii=False)
    parts = [json.dumps(each, ensure_ascii=False)[1:-1] for each in slices(text)]
    check_now()
    return "".join(('"', *parts, '"'))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_EXACT = Reader(
    json.JSONDecoder(
        parse_float=EXACT.create_decimal,
        parse_int=EXACT.create_decimal,
        parse_constant=_refuse_constant,
        object_pairs_hook=object_of,
    )
)
_PLAIN = Reader(json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse_constant))


def _read_json(text: str, reader: Reader, *, reads_escapes: bool = True) -> Any:
    if len(text) > LARGE_BYTES // 64:
        # A member needs some ten times the memory of its text: an object for the value, its name, a list
        # entry.
        charge_elements(2 * sum(map(text.count, ",:[{")))
    try:
        return reader.read(text)
    except ValueError:
        raise fault(text, reads_escapes=reads_escapes) from None
    except RecursionError:
        raise TooComplex("stack depth limit exceeded: the JSON value is nested too deeply") from None


def _canonical(value: Any, depth: int = 0) -> Any:
    if depth > DEPTH_MAX:
        raise TooComplex(f"stack depth limit exceeded: JSON is nested more than {DEPTH_MAX} deep")
    if isinstance(value, str):
        return _checked(value)
    if isinstance(value, JsonObject):
        return JsonObject([(_checked(name), _canonical(each, depth + 1)) for name, each in paced(value)])
    if isinstance(value, list):
        return tuple([_canonical(each, depth + 1) for each in paced(value)])
    return tidy(value) if isinstance(value, Decimal) else value


def _checked(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    if found_in(UNFIT, text):
        raise InvalidText("invalid input syntax for type json")
    return text


# Keys: what compareJsonbContainers would compare, in the order it would.


def _flat_top(value: Any) -> list[Any]:
    """A scalar at the top counts as an array of one, less than a true one of one."""
    tokens: list[Any] = []
    if isinstance(value, JsonObject):
        tokens.append(1)
        _flatten_object(value, tokens)
        return tokens
    is_array = isinstance(value, tuple)
    members = value if is_array else (value,)
    tokens += [0, len(members), is_array]
    for each in paced(members):
        _flatten(each, tokens)
    return tokens


def _flatten(value: Any, tokens: list[Any]) -> None:
    if value is None:
        tokens.append(_NULL)
    elif value is True or value is False:
        tokens += [_BOOL, value]
    elif isinstance(value, str):
        tokens += [_STRING, value]
    elif isinstance(value, Decimal):
        tokens += [_NUMBER, value]
    elif isinstance(value, JsonObject):
        tokens.append(_OBJECT)
        _flatten_object(value, tokens)
    else:
        tokens += [_ARRAY, len(value)]
        for each in paced(value):
            _flatten(each, tokens)


def _flatten_object(value: JsonObject, tokens: list[Any]) -> None:
    tokens.append(len(value))
    for name, each in paced(value):
        tokens.append(name)
        _flatten(each, tokens)


def _unflatten(tokens: list[Any]) -> Any:
    match tokens.pop():
        case 0:
            return None
        case 1 | 3:
            return tokens.pop()
        case 2:
            return tidy(tokens.pop())
        case 4:
            return tuple([_unflatten(tokens) for _ in paced(range(tokens.pop()))])
        case _:
            return _unflatten_object(tokens)


def _unflatten_object(tokens: list[Any]) -> JsonObject:
    return JsonObject([(tokens.pop(), _unflatten(tokens)) for _ in paced(range(tokens.pop()))])
