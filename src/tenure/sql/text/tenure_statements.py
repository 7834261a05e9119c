"""Statements that PostgreSQL's grammar does not know, told by their first words.

    SHOW TABLES FROM app          SET CLUSTER SETTING x = y        UPSERT INTO t ...

A statement is matched by the longest entry of a table that its words begin with; what follows is read token
by token with a `TokenReader`. Some begin like statements of PostgreSQL, such as ALTER ... CONFIGURE ZONE:
they are told by words further on (`MARKS`), and read from their start. Statements of parts that do not exist
yet are refused (0A000) by name.

Walk: `sql.execution.planning` asks `find` first, then PostgreSQL's grammar.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from tenure.base.errors import NotSupported, OutOfRange, SyntaxFault
from tenure.sql.text import parse
from tenure.sql.text.parse import Token

E = TypeVar("E")

FIRST_WORDS = (
    *("alter", "backup", "cancel", "check", "create", "drop", "export", "import", "pause", "reset"),
    *("restore", "resume", "run", "set", "show", "undrop", "upsert"),
)
"""The first words of all these statements: others go to PostgreSQL's grammar at once."""


Words = tuple[str, ...]

CONFIGURE_ZONE: Words = ("alter", "...", "configure", "zone")
SCHEMA_OF_DATABASE: Words = ("...", "schema", "database", ".", "schema")
DROP_DATABASE_WHOLE: Words = ("drop", "database", "...", "cascade")
RESET_TO: Words = ("alter", "table", "...", "reset", "to")
CONVERT_TO_SCHEMA: Words = ("alter", "database", "...", "convert", "to", "schema")
MOVE_TABLE: Words = ("alter", "table", "...", "rename", "to", "...", ".")


def _resets(words: Words) -> bool:
    """ALTER TABLE, a name, and the two words: a column may be called reset, and renamed."""
    return words[:2] == ("alter", "table") and _after_name(words)[:2] == ("reset", "to")


def _moves(words: Words) -> bool:
    """ALTER TABLE, a name, RENAME TO, and a name of several parts."""
    after = _after_name(words)
    return words[:2] == ("alter", "table") and after[:2] == ("rename", "to") and after[3:4] == (".",)


def _after_name(words: Words) -> Words:
    """The words after the name of the table that is altered."""
    at = 5 if words[2:4] == ("if", "exists") else 3
    while words[at : at + 1] == (".",):
        at += 2
    return words[at:]


MARKS: dict[Words, Callable[[Words], bool]] = {
    CONFIGURE_ZONE: lambda words: words[0] == "alter" and ("configure", "zone") in pairwise(words),
    SCHEMA_OF_DATABASE: lambda words: words[1:2] == ("schema",) and "." in words,
    DROP_DATABASE_WHOLE: lambda words: (
        words[:2] == ("drop", "database") and words[-1] in ("cascade", "restrict")
    ),
    RESET_TO: _resets,
    CONVERT_TO_SCHEMA: lambda words: (
        words[:2] == ("alter", "database") and ("convert", "to") in pairwise(words)
    ),
    MOVE_TABLE: _moves,
}
"""The entries of statements that begin like others of PostgreSQL, and what tells them."""

MARKED_FIRST_WORDS = ("alter", "drop")


NUMBER_DIGITS_MAX = 100
"""No number of these statements is longer; Python refuses to convert some thousand digits."""


class TokenReader:
    """The tokens of a statement, one after the other."""

    def __init__(self, text: str, found: Sequence[Token], at: int = 0) -> None:
        self._data = text.encode()
        self._found = found
        self._at = at

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._found)

    def peek(self) -> str:
        """The next word in lower case; "" at the end."""
        return "" if self.is_over else self._found[self._at].text.lower()

    def take(self, *words: str) -> bool:
        """Passes over these words if they come next."""
        ahead = [each.text.lower() for each in self._found[self._at : self._at + len(words)]]
        if ahead != list(words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise self.fault()

    def name(self) -> str:
        """An identifier: in quotes as it is, else in lower case."""
        token = self._next()
        if token.text.startswith('"'):
            return token.text[1:-1].replace('""', '"')
        if not (token.text[0].isalpha() or token.text[0] == "_"):
            self._at -= 1
            raise self.fault()
        return token.text.lower()

    def names(self) -> list[str]:
        """A qualified name: its parts."""
        path = [self.name()]
        while self.take("."):
            path.append(self.name())
        return path

    def string(self) -> str:
        """A string, a number or a word."""
        token = self._next()
        if token.text.startswith("'"):
            return token.text[1:-1].replace("''", "'")
        return token.text

    def number(self) -> int:
        token = self._next()
        if token.kind not in ("ICONST", "FCONST") or not token.text.isdigit():  # large ones are FCONST
            self._at -= 1
            raise self.fault()
        if len(token.text) > NUMBER_DIGITS_MAX:
            raise OutOfRange(f'value "{token.text}" is out of range for type bigint')
        return int(token.text)

    def rest(self) -> str:
        """The text that is left, as it stands."""
        if self.is_over:
            return ""
        start = self._found[self._at].start
        self._at = len(self._found)
        return self._data[start:].decode()

    def end(self) -> None:
        if not self.is_over:
            raise self.fault()

    def fault(self) -> SyntaxFault:
        if self.is_over:
            return SyntaxFault("syntax error at end of input", position=len(self._data.decode()) + 1)
        token = self._found[self._at]
        position = len(self._data[: token.start].decode()) + 1
        return SyntaxFault(f'syntax error at or near "{token.text}"', position=position)

    def _next(self) -> Token:
        if self.is_over:
            raise self.fault()
        self._at += 1
        return self._found[self._at - 1]


LATER = (
    ("backup",),
    ("restore",),
    ("check", "table"),
    ("create", "schedule"),
    ("drop", "schedule"),
    ("pause", "schedule"),
    ("resume", "schedule"),
    ("show", "backup"),
    ("show", "backups"),
    ("show", "grants"),
    ("show", "schedules"),
)
"""Statements that are reserved for parts that do not exist yet."""


def find(text: str, statements: Mapping[Words, E]) -> tuple[E, TokenReader] | None:
    """The entry that a statement's words name, and the words after them; None: it is PostgreSQL's."""
    if not _may_be_tenure_statement(text):
        return None
    found = _without_semicolon(parse.tokens(text))
    words = tuple(each.text.lower() for each in found[:4])
    for length in range(min(4, len(words)), 0, -1):
        entry = statements.get(words[:length])
        if entry is not None:
            return entry, TokenReader(text, found, length)
    if any(words[: len(each)] == each for each in LATER):
        raise NotSupported(f"{' '.join(words[:2]).upper()} is not supported yet")
    mark = _mark(found)
    return (statements[mark], TokenReader(text, found)) if mark in statements else None


def is_tenure_statement(text: str, statements: Mapping[Words, object]) -> bool:
    """Whether `find` finds it, or refuses it."""
    if not _may_be_tenure_statement(text):
        return False
    found = _without_semicolon(parse.tokens(text))
    words = tuple(each.text.lower() for each in found[:4])
    begins = any(words[:length] in statements or words[:length] in LATER for length in range(1, 5))
    return begins or _mark(found) in statements


def _may_be_tenure_statement(text: str) -> bool:
    first = text.lstrip()[:10].lower().split(None, 1)
    return bool(first) and first[0].rstrip(";(") in FIRST_WORDS


def _without_semicolon(found: Sequence[Token]) -> Sequence[Token]:
    """Clients may end a statement that they prepare with one."""
    return found[:-1] if found and found[-1].kind == "ASCII_59" else found


def _mark(found: Sequence[Token]) -> Words:
    """The entry of a statement that is told by words further on; () if it is none."""
    if not found or found[0].text.lower() not in MARKED_FIRST_WORDS:
        return ()
    words = tuple(each.text.lower() for each in found)
    return next((mark for mark, is_marked in MARKS.items() if is_marked(words)), ())
