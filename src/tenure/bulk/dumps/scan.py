r"""A dump as a stream: its statements, and the positions of its rows in the file.

    SET ...; CREATE TABLE ...;        DumpStatement    the statement's text, to be parsed
    COPY t (a, b) FROM stdin;         CopiedRows       ... and the ranges of bytes that its rows are in
    1 <tab> x
    \.
    INSERT INTO t VALUES (1, 'x');    InsertedRows     the first words, and the ranges that have the same ones
    \restrict, \unrestrict, \connect                   skipped; all other commands of psql are refused

Quoted text is found as PostgreSQL's lexer finds it: '...', E'...', "...", $tag$...$tag$, comments to the end
of the line and nested ones. Should the two differ all the same, the parser refuses anything but exactly one
statement. Only the positions of rows are kept; large blocks are cut into ranges on the way, with their line
numbers. Only INSERTs of plain constants count as rows: any other is a statement for the parser.

Nothing here is ever executed, and memory is bounded by the longest statement allowed.

Walk: `sql.statements.jobs.import_dump` -> `items`; kernels read the ranges by the copy rows and insert rows
of `pipeline.reading`.
"""

import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple, TypeAlias

from tenure.base.errors import BadDump
from tenure.bulk.importing.records import DumpRange
from tenure.pipeline.reading.insert_rows import STATEMENTS as INSERTS

PIECE_BYTES = 1 << 20
RANGE_BYTES = 32 << 20
"""As long as a split of any other input."""

INSERTS_BYTES = 8 << 20
"""A range of statements is held in memory as a whole while it is read."""


class DumpLimits(NamedTuple):
    """The resources that a dump may use in this process (S27)."""

    statement_bytes_max: int = 4 << 20
    """As long as a client's statement may be."""
    insert_bytes_max: int = 16 << 20
    items_max: int = 200_000
    """Statements and blocks of rows: ten for each of 20,000 tables."""


class DumpStatement(NamedTuple):
    text: str
    line: int


class CopiedRows(NamedTuple):
    text: str
    line: int
    ranges: tuple[DumpRange, ...]


class InsertedRows(NamedTuple):
    text: str
    """INSERT INTO t (a, b) VALUES: without the values."""
    line: int
    ranges: tuple[DumpRange, ...]


Item: TypeAlias = DumpStatement | CopiedRows | InsertedRows
Find: TypeAlias = Callable[[bytes, int], int | None]

USUAL = DumpLimits()


def items(stream: IO[bytes], file: str, limits: DumpLimits = USUAL) -> Iterator[Item]:
    """Raises BadDump where it cannot be read on, with the line."""
    scan = _Scan(stream, file, limits)
    for count, item in enumerate(scan.items(), 1):
        if count > limits.items_max:
            raise BadDump(
                f"the dump has more than {limits.items_max} statements and blocks of rows", file, item.line
            )
        yield item


_SPACE = re.compile(rb"(?:\s++|--[^\n]*+\n)*+")
_META = re.compile(rb"\\(?:(?:un)?restrict|connect)\b[^\n\\]*+\n")
_TAG = re.compile(rb"\$(?:[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*+)?\$")
_TOKEN = re.compile(
    rb"""[eE]'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'      # before names, which may end in an e
    | [A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*+
    | '[^']*+(?:''[^']*+)*+'
    | "[^"]*+(?:""[^"]*+)*+"
    | --[^\n]*+\n
    | [^A-Za-z_\x80-\xff'"$;/\-]++
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK = re.compile(rb"/\*|\*/")
_OPENING = (b"'", b'"', b"$", b"/", b"-")
"""Prefixes of a token of which only a part has been read."""

_FROM_STDIN = re.compile(rb"COPY\s.*\sFROM\s+stdin\s*;", re.IGNORECASE | re.DOTALL)
_MARKER = b"\\.\n"


class _Scan:
    def __init__(self, stream: IO[bytes], file: str, limits: DumpLimits) -> None:
        self._stream = stream
        self._file = file
        self._limits = limits
        self._data = b""
        self._at = 0
        """The position in `_data`; bytes before it were handled."""
        self._passed = 0
        """Bytes of the file before `_data`."""
        self._line = 1
        """The line at `_at`."""
        self._is_over = False

    def items(self) -> Iterator[Item]:
        inserts = _Inserts()
        while self._skip_blank():
            insert = self._insert()
            if insert is not None:
                yield from inserts.add(*insert)
                continue
            yield from inserts.end()
            if self._data[self._at : self._at + 1] == b"\\":
                self._meta()
            else:
                yield self._statement()
        yield from inserts.end()

    # ── moving on ──────────────────────────────────────────────────────────────────────────────

    def _more(self) -> bool:
        """Reads on; False at the end of the file."""
        piece = b"" if self._is_over else self._stream.read(PIECE_BYTES)
        self._is_over = not piece
        self._passed += self._at
        self._data = self._data[self._at :] + piece
        self._at = 0
        return not self._is_over

    def _advance(self, to: int) -> None:
        """Moves to that position."""
        self._line += self._data.count(b"\n", self._at, to)
        self._at = to

    def _skip_blank(self) -> bool:
        """Skips blanks and comments; False at the end of the file."""
        while True:
            found = _SPACE.match(self._data, self._at)
            assert found is not None
            self._advance(found.end())
            ahead = self._data[self._at : self._at + 2]
            if ahead == b"/*":
                self._advance(self._until(_block_end, "comment"))
            elif ahead and ahead not in (b"-", b"/", b"--"):
                return True
            elif len(self._data) - self._at > self._limits.statement_bytes_max:
                raise BadDump("the comment is too long", self._file, self._line, "54000")
            elif not self._more():
                return ahead not in (b"", b"--")  # the file may end in a comment

    def _until(self, find: Find, what: str) -> int:
        """The end of a token that starts here, according to `find`; that returns None if more must be
        read.
        """
        line = self._line
        maximum = self._limits.statement_bytes_max
        while True:
            end = find(self._data, self._at)
            if end is not None and end - self._at <= maximum:
                return end
            if end is not None or len(self._data) - self._at > maximum:
                raise BadDump(f"the {what} is longer than {maximum} bytes", self._file, line, "54000")
            if not self._more():
                raise BadDump(f"the {what} has no end", self._file, line)

    # ── tokens ──────────────────────────────────────────────────────────────────────────────────

    def _insert(self) -> tuple[str, int, int, int] | None:
        """INSERTs of constants: their first words, the line, and where they start and end."""
        while True:
            found = INSERTS.match(self._data, self._at)
            if found is not None:
                break
            room = self._limits.insert_bytes_max - (len(self._data) - self._at)
            may_be = b"INSERT INTO ".startswith(self._data[self._at : self._at + 12])
            if not may_be or room <= 0 or self._has_whole_statement() or not self._more():
                return None
        line, start = self._line, self._passed + self._at
        head = self._text(found[1], line)
        self._advance(found.end())
        return head, line, start, self._passed + self._at

    def _has_whole_statement(self) -> bool:
        """Whether a complete statement was read, so that more bytes would not change it."""
        return _statement_end(self._data, self._at) is not None

    def _meta(self) -> None:
        line = self._line
        while self._data.find(b"\n", self._at) < 0 and len(self._data) - self._at < PIECE_BYTES:
            if not self._more():
                self._data += b"\n"
        found = _META.match(self._data, self._at)
        if found is None:
            word = self._data[self._at : self._at + 32].split(maxsplit=1)[0].decode(errors="replace")
            raise BadDump(f"a dump must not have the command {word} of psql", self._file, line, "0A000")
        self._advance(found.end())

    def _statement(self) -> DumpStatement | CopiedRows:
        line = self._line
        end = self._until(_statement_end, "statement")
        data = self._data[self._at : end]
        self._advance(end)
        text = self._text(data, line)
        if _FROM_STDIN.fullmatch(data) is None:
            return DumpStatement(text, line)
        return CopiedRows(text, line, tuple(self._copied(line)))

    def _text(self, data: bytes, line: int) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            reason = f'invalid byte sequence for encoding "UTF8": 0x{data[error.start]:02x}'
            raise BadDump(reason, self._file, line, "22021") from error

    def _copied(self, line: int) -> Iterator[DumpRange]:
        r"""The rows up to `\.`, in ranges of whole lines."""
        self._to_next_line(line)
        start, first = self._passed + self._at, self._line
        while True:
            end = self._marker()
            upto = self._data.rfind(b"\n", self._at) + 1 if end is None else end
            self._advance(max(upto, self._at))
            here = self._passed + self._at
            if here > start and (end is not None or here - start >= RANGE_BYTES):
                yield DumpRange(start, here, first)
                start, first = here, self._line
            if end is not None:
                self._advance(end + len(_MARKER))
                return
            if len(self._data) - self._at > self._limits.insert_bytes_max * 2:
                raise BadDump("a row is too long", self._file, self._line, "54000")
            if not self._more() and not self._end_without_newline():
                raise BadDump(r"the rows of COPY do not end with \.", self._file, line)

    def _marker(self) -> int | None:
        """The end of the rows, if the line that begins here is, or completes, the marker."""
        if self._data.startswith(_MARKER, self._at):
            return self._at
        found = self._data.find(b"\n" + _MARKER, self._at)
        return None if found < 0 else found + 1

    def _to_next_line(self, line: int) -> None:
        while self._at == len(self._data):
            if not self._more():
                raise BadDump(r"the rows of COPY do not end with \.", self._file, line)
        if self._data[self._at : self._at + 1] != b"\n":
            raise BadDump("the rows of COPY must start on the next line", self._file, line)
        self._advance(self._at + 1)

    def _end_without_newline(self) -> bool:
        is_end = self._data[self._at :] == b"\\."
        self._data += b"\n" if is_end else b""
        return is_end


class _Inserts:
    """Consecutive statements with the same first words are one block of rows."""

    def __init__(self) -> None:
        self._head = ""
        self._line = 0
        self._ranges: list[DumpRange] = []

    def add(self, head: str, line: int, start: int, end: int) -> Iterator[InsertedRows]:
        if head != self._head:
            yield from self.end()
            self._head, self._line = head, line
        last = self._ranges[-1] if self._ranges else None
        # Between two there may be a blank, but no comment, which the reader of rows would not skip.
        if last is None or start - last.end > 2 or end - last.start > INSERTS_BYTES:
            self._ranges.append(DumpRange(start, end, line))
        else:
            self._ranges[-1] = DumpRange(last.start, end, last.line)

    def end(self) -> Iterator[InsertedRows]:
        if self._ranges:
            yield InsertedRows(self._head, self._line, tuple(self._ranges))
        self._head, self._ranges = "", []


def _statement_end(data: bytes, at: int) -> int | None:
    """The position after the semicolon of the statement that starts here; None if it was not read yet."""
    while at < len(data):
        sign = data[at : at + 1]
        if sign == b";":
            return at + 1
        found = _TOKEN.match(data, at)
        if data[at : at + 2] in (b"E'", b"e'") and found is not None and found.end() == at + 1:
            return None  # a string that continues, not a name and a string
        if found is not None and not (found.end() == len(data) and sign.isalpha()):
            at = found.end()
            continue
        following = _odd_end(data, at)
        if following is None:
            return None
        at = following
    return None


def _odd_end(data: bytes, at: int) -> int | None:
    """The end of a token that `_TOKEN` does not match, or not yet."""
    sign = data[at : at + 1]
    if sign not in _OPENING or len(data) - at < 2:
        return None
    if sign == b"/":
        return _block_end(data, at) if data[at + 1 : at + 2] == b"*" else at + 1
    if sign == b"-":
        return None if data[at + 1 : at + 2] == b"-" else at + 1
    if sign == b"$":
        tag = _TAG.match(data, at)
        if tag is None:
            return at + 1
        end = data.find(tag[0], tag.end())
        return None if end < 0 else end + len(tag[0])
    return None


def _block_end(data: bytes, at: int) -> int | None:
    """The position after a comment that may contain others."""
    depth = 0
    for found in _BLOCK.finditer(data, at):
        depth += 1 if found[0] == b"/*" else -1
        if depth == 0:
            return found.end()
    return None
