"""Constants lifted out of a statement's text, so that statements that differ in them share one plan.

    UPDATE t SET a = a + 5 WHERE id = 17        UPDATE t SET a = a + $1 WHERE id = $2        (5, 17)

Clients that write values into the text would have every statement planned anew. A constant is lifted only
where a parameter means the same: as an operand of a comparison or of + - *, or in the rows of INSERT ...
VALUES. A number keeps its type; a string takes the type of its context, as in PostgreSQL. A statement that
cannot be planned this way is planned with its constants, so its errors are those of the text itself.

Invariant (lifted-same): a statement gives the same with its constants lifted as without.

Walk: `sql.execution.preparing` asks `lift` for statements that come without parameters.
"""

from datetime import tzinfo
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.type_names import type_of
from tenure.sql.text.parse import Token, tokens

STATEMENTS = ("select", "update", "delete", "insert")

TEXT_MAX = 10_000
"""Longer statements are rarely alike."""

CONSTANTS_MAX = 1_000

_OPERATORS = frozenset(("=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*"))
_CONSTANTS = frozenset(("ICONST", "FCONST", "SCONST"))
_OPERANDS = frozenset(("IDENT", "ICONST", "FCONST", "SCONST"))
"""Tokens before a minus that is an operator, not a sign."""
_NOT_BEFORE = frozenset(("::", "[", "collate", "."))
"""Tokens that must not follow a lifted constant: a cast or subscript changes its meaning."""

_INT4, _INT8, _NUMERIC = (type_of(TypeRef(name)) for name in ("int4", "int8", "numeric"))


class Lifted(NamedTuple):
    text: str
    types: tuple[Type | None, ...]
    """The type of each parameter; None if its context decides."""
    texts: tuple[str, ...]

    def values(self, types: tuple[Type, ...], zone: tzinfo) -> tuple[Datum, ...]:
        """The constants as values of the chosen types. Raises the error of a constant that cannot be read."""
        return tuple([kind.parse_in(text, zone) for kind, text in zip(types, self.texts, strict=True)])


def lift(text: str) -> Lifted | None:
    """None if there is nothing to lift, or it is better left alone."""
    if len(text) > TEXT_MAX:
        return None
    found = tokens(text)
    if not found or found[0].text.lower() not in STATEMENTS:
        return None
    places = list(_places(found))
    if not places or len(places) > CONSTANTS_MAX or any(each.kind == "PARAM" for each in found):
        return None
    data = text.encode()
    pieces: list[bytes] = []
    end = 0
    for number, token in enumerate(places, 1):
        pieces += (data[end : token.start], f"${number}".encode())
        end = token.end
    pieces.append(data[end:])
    return Lifted(
        b"".join(pieces).decode(),
        tuple(_type(each) for each in places),
        tuple(_unquoted(each) for each in places),
    )


def _places(found: tuple[Token, ...]) -> "list[Token]":
    places = []
    is_insert = found[0].text.lower() == "insert"
    depth = values_depth = 0
    for at, token in enumerate(found):
        word = token.text.lower()
        if word == "(":
            depth += 1
        elif word == ")":
            depth -= 1
        elif is_insert and word == "values":
            values_depth = depth + 1
        elif word in ("on", "returning", "select"):
            values_depth = 0
        if token.kind not in _CONSTANTS or at == 0 or not _is_plain(token):
            continue
        following = found[at + 1].text.lower() if at + 1 < len(found) else ""
        if following in _NOT_BEFORE:
            continue
        before = found[at - 1].text
        is_row = bool(values_depth) and depth == values_depth
        is_operand = before in _OPERATORS and (before != "-" or _is_minus_apart(found, at, is_row))
        if is_operand or (is_row and before in ("(", ",")):
            places.append(token)
    return places


def _is_minus_apart(found: tuple[Token, ...], at: int, is_row: bool) -> bool:
    """Whether the minus before a number may be left standing: where it is a sign it belongs to the constant.

    -2147483648 is an int4, and ORDER BY -1 names no column, only as long as the two are together.
    """
    token, earlier = found[at], found[at - 2]
    if token.kind == "FCONST" and token.text.isdecimal():
        return False
    is_operand = earlier.kind in _OPERANDS or earlier.text in (")", "]")
    return is_operand or earlier.text in _OPERATORS or (is_row and earlier.text in ("(", ","))


def _is_plain(token: Token) -> bool:
    """Not E'...', U&'...' or $$...$$, nor a number in another base or with underscores."""
    if token.kind == "SCONST":
        # Two strings on two lines are one constant: a quote is left over between them.
        return token.text[0] == "'" and "'" not in token.text[1:-1].replace("''", "")
    return all(each in "0123456789.eE+-" for each in token.text)


def _type(token: Token) -> Type | None:
    if token.kind == "SCONST":
        return None
    if token.kind == "FCONST" and not token.text.isdecimal():
        return _NUMERIC
    number = int(token.text)
    if number < 2**31:
        return _INT4
    return _INT8 if number < 2**63 else _NUMERIC


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("''", "'") if token.kind == "SCONST" else token.text
