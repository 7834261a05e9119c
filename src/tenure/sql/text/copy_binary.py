"""COPY's binary format as it comes in: pieces of any length, cut anywhere, to rows of fields.

    signature, flags, length of an extension, the extension
    per row: number of fields, then for each its length and its bytes; -1 is NULL
    -1 in the place of a number of fields: the end

The lengths that a client sends are checked before their data is awaited: a row may be as long as one of the
text format. No byte is read twice, and kept data is not copied when more comes.

Walk: `statements.dml.copy` feeds a `BinaryReader`.
"""

from collections.abc import Iterator

from tenure.base.errors import BadFile
from tenure.sql.text.copy_text import FIELD_BYTES_MAX

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEAD_BYTES = len(SIGNATURE) + 8

Field = bytes | None


class BinaryReader:
    def __init__(self) -> None:
        self._kept = bytearray()
        self._at = 0
        """How much of the kept data has been read."""
        self._has_header = self._is_over = False
        self._skipped_bytes = 0
        """The bytes of the header's extension, which is skipped, that are still to come."""
        self._missing = -1
        """The fields of the current row that are still to come; -1 between rows."""
        self._fields: list[tuple[int, int] | None] = []
        """The position of each field of the current row."""

    @property
    def kept_bytes(self) -> int:
        return len(self._kept)

    def rows(self, data: bytes) -> Iterator[list[Field]]:
        self._kept += data
        if not self._has_header and not self._read_header():
            return
        self._skip()
        while not self._is_over and self._has_row():
            yield [None if each is None else bytes(self._kept[slice(*each)]) for each in self._fields]
            self._missing, self._fields = -1, []
        if self._missing < 0:
            del self._kept[: self._at]
            self._at = 0

    def _read_header(self) -> bool:
        if len(self._kept) < _HEAD_BYTES:
            return False
        if not self._kept.startswith(SIGNATURE):
            raise BadFile("COPY file signature not recognized")
        self._skipped_bytes = int.from_bytes(self._kept[_HEAD_BYTES - 4 : _HEAD_BYTES], "big")
        del self._kept[:_HEAD_BYTES]
        self._has_header = True
        return True

    def _skip(self) -> None:
        count = min(self._skipped_bytes, len(self._kept))
        if count:
            del self._kept[:count]
            self._skipped_bytes -= count

    def _has_row(self) -> bool:
        """Whether a row is there as a whole; goes on where it stopped."""
        if self._missing < 0:
            count = self._number(2)
            if count is None:
                return False
            if count == -1:
                self._is_over = True
                return False
            self._missing, self._row_at = max(0, count), self._at
        while self._missing:
            size = self._number(4)
            if size is None:
                return False
            self._check(size)
            if size > len(self._kept) - self._at:
                self._at -= 4  # its length is read again when all of it may be there
                return False
            self._fields.append(None if size == -1 else (self._at, self._at + size))
            self._at += max(0, size)
            self._missing -= 1
        return True

    def _number(self, size: int) -> int | None:
        if len(self._kept) < self._at + size:
            return None
        number = int.from_bytes(self._kept[self._at : self._at + size], "big", signed=True)
        self._at += size
        return number

    def _check(self, size: int) -> None:
        if size < -1:
            raise BadFile("invalid field size")
        if self._at + size - self._row_at > FIELD_BYTES_MAX:
            raise BadFile(f"a row is longer than {FIELD_BYTES_MAX} bytes")

    def end(self) -> None:
        if not self._is_over and (self._kept or self._skipped_bytes):
            raise BadFile("unexpected EOF in COPY data")
