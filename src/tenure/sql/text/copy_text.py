"""COPY's text and CSV formats: rows to bytes and back, fields as text.

    text   fields between tabs, \\N for NULL, backslashes before what would be misread
    csv    fields between commas, in quotes where needed; NULL is an empty field without quotes

Reading takes pieces of any length, cut anywhere: what is not a whole row yet is kept for the next piece.

Walk: `statements.dml.copy` makes a reader or writer by the statement's options.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tenure.base.errors import BadFile, UnknownCharacter
from tenure.expr.formats.copy_escapes import split_escaped, unescaped
from tenure.expr.types.encodings import Encoding

FIELD_BYTES_MAX = 64 * 1024 * 1024
"""The longest row that is waited for: beyond it a quote was probably never closed."""


BLOCK_BYTES_MAX = 1 << 20
"""Of rows that are taken apart together: doors hand over 256 kB at a time."""


@dataclass(frozen=True, slots=True)
class Format:
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    is_csv: bool = False
    has_header: bool = False
    must_match: bool = False
    """HEADER MATCH: the header must name the columns."""
    force_quote: frozenset[int] | None = frozenset()
    """Positions that are always quoted; None: all of them."""
    force_null: frozenset[int] = frozenset()
    force_not_null: frozenset[int] = frozenset()
    encoding: Encoding | None = None
    """Of the data; None: the client's."""


Field = str | None


class CopyReader:
    """Gives rows of fields; `line` is the number of the row given last, for errors."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._kept = bytearray()
        self._looked = 0
        """So many of the kept bytes contain no end of a row."""
        self._sought = 0
        """So many of the kept bytes contain no further newline."""
        self._is_quoted = False
        """There a quote is open."""
        self._is_over = False
        self.line = 0

    @property
    def kept_bytes(self) -> int:
        return len(self._kept)

    def rows(self, data: bytes) -> Iterator[list[Field]]:
        if self._is_over:
            return
        self._kept += data
        yield from self._take(is_last=False)

    def end(self) -> Iterator[list[Field]]:
        """The last row, when the data has ended."""
        if not self._is_over and self._kept:
            yield from self._take(is_last=True)

    def plain_lines(self, data: bytes) -> list[str]:
        """All whole rows at once, if nothing but fields of the text format is among them; else none.

        What it gives counts as read once `passed` says so; the rest is for `rows`.
        """
        if self._is_over:
            return []
        self._kept += data
        is_headed = self._format.has_header and self.line == 0
        if self._format.is_csv or is_headed or len(self._kept) > BLOCK_BYTES_MAX:
            return []
        try:
            text = self._kept[: self._kept.rfind(b"\n") + 1].decode()
        except UnicodeDecodeError:
            return []
        if "\0" in text or "\r" in text or "\\." in text:
            return []
        return text.split("\n")[:-1]

    def columns(self, lines: Sequence[str], count: int) -> Sequence[Sequence[Field]] | None:
        """The fields of some plain lines by column; None if a line has more or fewer of them."""
        null, delimiter = self._format.null, self._format.delimiter
        if any("\\" in line for line in lines) or "\\" not in null:
            rows = [self._text_fields(line) for line in lines]
            return None if any(len(row) != count for row in rows) else list(zip(*rows, strict=True))
        if any(line.count(delimiter) != count - 1 for line in lines):
            return None
        fields = delimiter.join(lines).split(delimiter)
        return [fields[at::count] for at in range(count)]

    def passed(self, lines: Sequence[str]) -> None:
        """The first of the lines that `plain_lines` gave are done with."""
        del self._kept[: sum(len(line.encode()) + 1 for line in lines)]
        self._looked = self._sought = 0
        self.line += len(lines)

    def _take(self, *, is_last: bool) -> Iterator[list[Field]]:
        for line in self._lines(is_last=is_last):
            self.line += 1
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise UnknownCharacter(
                    f'invalid byte sequence for encoding "UTF8": 0x{line[error.start]:02x}'
                ) from error
            if "\0" in text:
                raise UnknownCharacter('invalid byte sequence for encoding "UTF8": 0x00')
            if text == "\\." and not self._format.is_csv:  # in CSV it is data, since PostgreSQL 18
                self._is_over = True
                return
            if self.line == 1 and self._format.has_header and not self._format.must_match:
                continue
            yield self._csv_fields(text) if self._format.is_csv else self._text_fields(text)

    def _lines(self, *, is_last: bool) -> Iterator[bytearray]:
        """Whole lines; in CSV a line may hold newlines inside quotes. Nothing is looked at twice."""
        data, start, search = self._kept, 0, self._looked
        while (end := data.find(b"\n", max(search, self._sought))) >= 0:
            is_quoted = self._format.is_csv and self._is_open(data[search:end])
            search = end + 1
            if is_quoted != self._is_quoted:
                self._is_quoted = True
                continue
            self._is_quoted = False
            yield data[start : end - 1 if data[end - 1 : end] == b"\r" and end > start else end]
            start = search
        del data[:start]
        self._looked, self._sought = search - start, len(data)
        if len(self._kept) > FIELD_BYTES_MAX:
            raise BadFile(f"a row is longer than {FIELD_BYTES_MAX} bytes", hint="Is a quote left open?")
        if is_last and self._kept:
            if self._format.is_csv and self._is_open(self._kept[self._looked :]) != self._is_quoted:
                raise BadFile("unterminated CSV quoted field")
            rest, self._kept, self._sought = self._kept, bytearray(), 0
            yield rest.removesuffix(b"\r")

    def _is_open(self, piece: bytes | bytearray) -> bool:
        """Whether the quotes in it are unbalanced, so that they open or close a quoted field."""
        quote, escape = self._format.quote.encode(), self._format.escape.encode()
        if escape != quote:
            piece = re.sub(re.escape(escape) + b"[" + re.escape(quote + escape) + b"]", b"", piece)
        return piece.count(quote) % 2 == 1

    def _text_fields(self, line: str) -> list[Field]:
        null, delimiter = self._format.null, self._format.delimiter
        if "\\" not in line:
            return [None if each == null else each for each in line.split(delimiter)]
        return [None if each == null else unescaped(each) for each in split_escaped(line, delimiter)]

    def _csv_fields(self, line: str) -> list[Field]:
        format = self._format
        fields: list[Field] = []
        at = 0
        while True:
            field, was_quoted, at = self._csv_field(line, at)
            position = len(fields)
            is_null = position in format.force_null if was_quoted else position not in format.force_not_null
            fields.append(None if is_null and field == format.null else field)
            if at >= len(line):
                return fields
            at += 1
            if at == len(line):
                is_null = format.null == "" and len(fields) not in format.force_not_null
                fields.append(None if is_null else "")
                return fields

    def _csv_field(self, line: str, at: int) -> tuple[str, bool, int]:
        """One field from a position on: its text, whether any of it was quoted, where it ends."""
        quote, escape, delimiter = self._format.quote, self._format.escape, self._format.delimiter
        pieces: list[str] = []
        was_quoted = is_inside = False
        while at < len(line):
            character = line[at]
            if is_inside and character == escape and line[at + 1 : at + 2] in (quote, escape):
                pieces.append(line[at + 1])
                at += 2
                continue
            if character == quote:
                is_inside, was_quoted = not is_inside, True
            elif character == delimiter and not is_inside:
                break
            else:
                pieces.append(character)
            at += 1
        if is_inside:
            raise BadFile("unterminated CSV quoted field")
        return "".join(pieces), was_quoted, at


_SPECIAL = str.maketrans(
    {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
)


def text_line(fields: Sequence[Field], format: Format) -> bytes:
    delimiter = format.delimiter
    written = []
    for each in fields:
        if each is None:
            written.append(format.null)
            continue
        text = each.translate(_SPECIAL)
        written.append(text if delimiter == "\t" else text.replace(delimiter, "\\" + delimiter))
    return (delimiter.join(written) + "\n").encode()


def csv_line(fields: Sequence[Field], format: Format) -> bytes:
    written = [
        format.null if each is None else _csv_text(each, at, format, is_only=len(fields) == 1)
        for at, each in enumerate(fields)
    ]
    return (format.delimiter.join(written) + "\n").encode()


def _csv_text(field: str, position: int, format: Format, *, is_only: bool) -> str:
    is_forced = format.force_quote is None or position in format.force_quote
    needs_quotes = (
        is_forced
        or field == format.null
        or (is_only and field == "\\.")
        or any(each in field for each in (format.delimiter, format.quote, "\n", "\r"))
    )
    if not needs_quotes:
        return field
    quote, escape = format.quote, format.escape
    if escape != quote:
        field = field.replace(escape, escape + escape)
    return quote + field.replace(quote, escape + quote) + quote


def writer(format: Format) -> Callable[[Sequence[Field], Format], bytes]:
    return csv_line if format.is_csv else text_line
