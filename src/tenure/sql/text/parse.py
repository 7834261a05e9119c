"""PostgreSQL's own grammar: text to parse trees. The only file that knows `postgast`.

A tree is PostgreSQL's raw parse tree: its nodes and fields are named as in PostgreSQL's
`parsenodes.h` and `primnodes.h`, fields in snake_case; an absent field reads as 0, "" or an empty list.

    statement = one("SELECT a FROM t WHERE id = $1")
    kind(statement.tree)                 "SelectStmt"
    kind(statement.tree.target_list[0])  "ResTarget"

A node that may be of several kinds comes wrapped; `unwrap` opens it, and `kind` says what it is.
Lists in this tree hold wrapped nodes throughout, so code below says `items(tree.args)`.

Walk: `sql.execution.planning` calls `parse` and `one`; the binder reads the trees.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import postgast
from google._upb import _message
from google.protobuf.message import DecodeError

from tenure.base.errors import InvalidParameter, SyntaxFault, TooComplex, UserError, WindowFault
from tenure.base.interruptible import paced

STATEMENT_BYTES_MAX = 4 * 1024 * 1024
"""The longest statement; larger data goes through COPY."""

DEPTH_MAX = 600
"""How deep a parse tree may become: the parser recurses in C, where too deep is a crash. A stack of 512
KiB bears more than twice that."""

# Protobuf refuses trees deeper than 100 unless told; a chain of fifty || is deeper. What is too deep for
# the parser itself, `check_depth` has refused before.
_message.SetAllowOversizeProtos(True)

Tree: TypeAlias = Any
"""A protobuf message. Its fields depend on its kind, so the type checker cannot check them."""


class ParsedStatement(NamedTuple):
    tree: Tree
    text: str
    """The statement's own text, without what surrounds it."""


def parse(text: str) -> list[ParsedStatement]:
    """All statements of a query string; empty ones are left out. Raises SyntaxFault (42601)."""
    check_depth(tokens(text))
    data = text.encode()
    is_ascii = len(data) == len(text)
    try:
        result = postgast.parse(text)
    except postgast.PgQueryError as error:
        raise _fault(error) from error
    except DecodeError as error:
        raise TooComplex("stack depth limit exceeded", hint="Simplify the statement.") from error
    statements = []
    for raw in result.stmts:
        start, length = raw.stmt_location, raw.stmt_len
        end = start + length if length else len(data)
        piece = text[start:end] if is_ascii else data[start:end].decode()
        statements.append(ParsedStatement(unwrap(raw.stmt), piece.strip()))
    return statements


def one(text: str) -> ParsedStatement | None:
    """The one statement of a text; None if it is empty. Several are an error, as PostgreSQL has it."""
    found = parse(text)
    if len(found) > 1:
        raise SyntaxFault("cannot insert multiple commands into a prepared statement")
    return found[0] if found else None


def expression(text: str) -> Tree:
    """The tree of one expression, as it is kept in a descriptor."""
    found = one(f"SELECT {text}")
    assert found is not None
    return child(unwrap(found.tree.target_list[0]), "val")


def type_name(text: str) -> Tree:
    """The TypeName that a text is. Raises SyntaxFault (42601) if it is none."""
    try:
        found = one(f"SELECT CAST(NULL AS {text})")
    except SyntaxFault as error:
        error.position = 0  # of no text that the client knows
        raise
    cast = child(unwrap(found.tree.target_list[0]), "val") if found is not None else None
    if cast is None or kind(cast) != "TypeCast" or len(found.tree.target_list) > 1:  # type: ignore[union-attr]
        raise SyntaxFault(f'invalid type name "{text}"')
    return cast.type_name


def deparsed(tree: Tree) -> str:
    """The text of a SELECT, written anew: the names in it are those of the tree."""
    whole = postgast.ParseResult()
    whole.stmts.add().stmt.select_stmt.CopyFrom(tree)
    text: str = postgast.deparse(whole)
    return text


def _check_size(text: str) -> None:
    if len(text) > STATEMENT_BYTES_MAX:
        raise TooComplex(
            f"a statement of {len(text)} characters is longer than {STATEMENT_BYTES_MAX}",
            hint="Split it, or use COPY.",
        )
    if "\0" in text:
        raise SyntaxFault('invalid byte sequence for encoding "UTF8": 0x00')


OPENING, CLOSING = ("ASCII_40", "ASCII_91"), ("ASCII_41", "ASCII_93")
_SEPARATORS = ("ASCII_44", "ASCII_59", "AND", "OR", "SELECT", "FROM", "WHERE", "WHEN", "THEN", "ELSE", "ON")
"""Tokens between siblings: PostgreSQL flattens chains of AND and OR."""
_CHAINS = ("UNION", "INTERSECT", "EXCEPT", "JOIN", "CASE")
_PLAIN = ("IDENT", "SCONST", "ICONST", "FCONST", "PARAM", "ASCII_46")


def check_depth(found: "tuple[Token, ...]") -> None:
    """Refuses (54001) texts whose tree might be too deep, by an estimate that is never too low."""
    levels = [[0, 0]]
    depth = 0  # the sum over the levels that are open
    for token in found:
        if token.kind in OPENING:
            levels.append([0, 0])
            depth += 1
        elif token.kind in CLOSING:
            if len(levels) > 1:
                depth -= 1 + sum(levels.pop())
        elif token.kind in _SEPARATORS:
            depth -= levels[-1][0]
            levels[-1][0] = 0
        elif token.kind not in _PLAIN:
            levels[-1][token.kind in _CHAINS] += 1
            depth += 1
        if depth > DEPTH_MAX:
            raise TooComplex(
                "stack depth limit exceeded", hint="Simplify the statement, or write lists as arrays."
            )


def _fault(error: postgast.PgQueryError) -> UserError:
    message = str(error.message)
    if "stack depth" in message:
        return TooComplex(message)
    if message.startswith("precision for type float"):
        return InvalidParameter(message, position=int(error.cursorpos or 0))
    fault = WindowFault if message.startswith("frame ") else SyntaxFault
    return fault(message, position=int(error.cursorpos or 0))


def unwrap(node: Tree) -> Tree:
    """Opens a node that may be of several kinds; None if there is none."""
    if node.DESCRIPTOR.name != "Node":
        return node
    name = node.WhichOneof("node")
    return None if name is None else getattr(node, name)


def items(nodes: Iterable[Tree]) -> list[Tree]:
    return [unwrap(each) for each in nodes]


def kind(tree: Tree) -> str:
    """As PostgreSQL names it: SelectStmt, A_Expr, ColumnRef ..."""
    name: str = tree.DESCRIPTOR.name
    return name


def has(tree: Tree, field: str) -> bool:
    """Whether a single node is there."""
    present: bool = tree.HasField(field)
    return present


def child(tree: Tree, field: str) -> Tree:
    """The node in a field, unwrapped; None if it is absent."""
    return unwrap(getattr(tree, field)) if tree.HasField(field) else None


def option(tree: Tree, field: str) -> str:
    """An enumeration by its name: option(join, "jointype") is "JOIN_LEFT"."""
    descriptor = tree.DESCRIPTOR.fields_by_name[field].enum_type
    name: str = descriptor.values_by_number[getattr(tree, field)].name
    return name


def string(node: Tree) -> str:
    """The text of a String node."""
    value: str = unwrap(node).sval
    return value


def names(nodes: Iterable[Tree]) -> list[str]:
    """The parts of a qualified name."""
    return [string(each) for each in nodes]


SHORT_CHARACTERS_MAX = 4_000
"""The longest text whose tokens are cached."""


class Token(NamedTuple):
    text: str
    kind: str
    """IDENT, SCONST, ICONST, ASCII_40 ...; a keyword by PostgreSQL's name for it: SELECT, TIME."""
    start: int
    end: int


def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of PostgreSQL's lexer, without comments. Cached, as several callers ask in a row."""
    return _long_tokens(text) if len(text) > SHORT_CHARACTERS_MAX else _short_tokens(text)


def forget_long_tokens() -> None:
    """Called once a text is planned: the tokens of a megabyte of text take 300 MB."""
    _long_tokens.cache_clear()


def _scanned(text: str) -> tuple[Token, ...]:
    _check_size(text)
    try:
        found = postgast.scan(text)
    except postgast.PgQueryError as error:
        raise _fault(error) from error
    data = text.encode()
    kinds = found.DESCRIPTOR.fields_by_name["tokens"].message_type.fields_by_name["token"].enum_type
    listed = []
    for token in paced(found.tokens):
        number, start, end = token.token, token.start, token.end
        name = _TOKEN_NAMES.get(number)
        if name is None:
            name = _TOKEN_NAMES[number] = _token_name(kinds, number)
        if name not in ("SQL_COMMENT", "C_COMMENT"):
            listed.append(Token(data[start:end].decode(), name, start, end))
    return tuple(listed)


def _token_name(kinds: Any, number: int) -> str:
    """Characters that no statement of PostgreSQL's has, such as a brace, are not among the kinds."""
    kind = kinds.values_by_number.get(number)
    return f"ASCII_{number}" if kind is None else str(kind.name)


_TOKEN_NAMES: dict[int, str] = {}
"""Token names by number, cached: asking the grammar costs ten times as much."""
_short_tokens = lru_cache(maxsize=32)(_scanned)
_long_tokens = lru_cache(maxsize=2)(_scanned)


NAME_BYTES_MAX = 63
_LONG = re.compile(r'[^\s"\'(),.;]{16,}|"[^"]{16,}"')
"""A word that may be more than 63 bytes: 16 characters of four."""


def names_too_long(text: str) -> list[tuple[str, str]]:
    """The identifiers that PostgreSQL's lexer truncates, and their truncated forms."""
    if _LONG.search(text) is None or len(text.encode()) <= NAME_BYTES_MAX:
        return []
    found = []
    for token in tokens(text):
        if token.kind == "IDENT" and token.end - token.start > NAME_BYTES_MAX:
            is_quoted = token.text.startswith('"')
            name = token.text[1:-1].replace('""', '"') if is_quoted else token.text.lower()
            if len(name.encode()) > NAME_BYTES_MAX:
                found.append((name, name.encode()[:NAME_BYTES_MAX].decode(errors="ignore")))
    return found


def after(text: str, keyword: str) -> str:
    """The text after the first such keyword that stands in no brackets."""
    depth = 0
    for token in tokens(text):
        depth += (token.kind in OPENING) - (token.kind in CLOSING)
        if depth == 0 and token.kind == keyword:
            return text.encode()[token.end :].decode()
    raise SyntaxFault(f"syntax error: {keyword} is missing")


@lru_cache(maxsize=4096)
def is_reserved(word: str) -> bool:
    """Whether a word needs quotes to be a name: what is a keyword of any reserved kind."""
    try:
        found = postgast.scan(word)
    except postgast.PgQueryError:
        return True
    kinds = type(found.tokens[0]).DESCRIPTOR.fields_by_name["keyword_kind"].enum_type
    kind_of = kinds.values_by_number[found.tokens[0].keyword_kind].name
    return kind_of in ("RESERVED_KEYWORD", "TYPE_FUNC_NAME_KEYWORD", "COL_NAME_KEYWORD")
