"""Statements that PostgreSQL's grammar does not know, told by their first words.

    SHOW TABLES FROM app          SET CLUSTER SETTING x = y        UPSERT INTO t ...

A statement is matched by the longest entry of a table that its words begin with; what follows is read token
by token with a `TokenReader`. Statements of parts that do not exist yet are refused (0A000) by name.

Walk: `sql.execution.planning` asks `find` first, then PostgreSQL's grammar.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tenure.base.errors import NotSupported, SyntaxFault
from tenure.sql.text import parse
from tenure.sql.text.parse import Token

E = TypeVar("E")

FIRST_WORDS = (
    *("alter", "backup", "cancel", "check", "create", "drop", "export", "import", "pause", "reset"),
    *("restore", "resume", "run", "set", "show", "undrop", "upsert"),
)
"""The first words of all these statements: others go to PostgreSQL's grammar at once."""


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
        parts = [self.name()]
        while self.take("."):
            parts.append(self.name())
        return parts

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
    ("undrop",),
    ("check", "table"),
    ("run", "gc"),
    ("create", "changefeed"),
    ("alter", "changefeed"),
    ("create", "schedule"),
    ("drop", "schedule"),
    ("pause", "schedule"),
    ("resume", "schedule"),
    ("create", "snapshot"),
    ("drop", "snapshot"),
    ("show", "backup"),
    ("show", "backups"),
    ("show", "changefeed"),
    ("show", "gc"),
    ("show", "grants"),
    ("show", "protected"),
    ("show", "schedules"),
    ("show", "snapshots"),
    ("show", "zone"),
)
"""Statements that are reserved for parts that do not exist yet."""


def find(text: str, statements: Mapping[tuple[str, ...], E]) -> tuple[E, TokenReader] | None:
    """The entry that a statement's first words name, and the words after them; None: it is PostgreSQL's."""
    if not _may_be_tenure_statement(text):
        return None
    found = parse.tokens(text)
    words = tuple(each.text.lower() for each in found[:4])
    for length in range(min(4, len(words)), 0, -1):
        entry = statements.get(words[:length])
        if entry is not None:
            return entry, TokenReader(text, found, length)
    if any(words[: len(each)] == each for each in LATER):
        raise NotSupported(f"{' '.join(words[:2]).upper()} is not supported yet")
    if "configure" in words or _has(found, "configure", "zone"):
        raise NotSupported("CONFIGURE ZONE is not supported yet")
    return None


def is_tenure_statement(text: str, statements: Mapping[tuple[str, ...], object]) -> bool:
    """Whether `find` finds it, or refuses it."""
    if not _may_be_tenure_statement(text):
        return False
    found = parse.tokens(text)
    words = tuple(each.text.lower() for each in found[:4])
    begins = any(words[:length] in statements or words[:length] in LATER for length in range(1, 5))
    return begins or _has(found, "configure")


def _may_be_tenure_statement(text: str) -> bool:
    first = text.lstrip()[:10].lower().split(None, 1)
    return bool(first) and first[0].rstrip(";(") in FIRST_WORDS


def _has(found: Sequence[Token], *words: str) -> bool:
    texts = [each.text.lower() for each in found]
    return any(texts[at : at + len(words)] == list(words) for at in range(len(texts)))
