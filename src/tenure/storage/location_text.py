"""The text of a location: parsed once, checked whole, and rendered without its secrets.

    data/2026/*.csv                          below the directory for files
    file:///srv/files/data/a%20b.csv         the same, absolute
    s3://bucket/exports/part-?.parquet?AWS_ACCESS_KEY_ID=...&AWS_SECRET_ACCESS_KEY=...

The text is first cut at its slashes. Each component is then decoded once (`%2A` is a literal star) and
checked as it will be used. So a slash, two dots or a NUL that decoding produces is never read as path syntax,
and a literal star never as a pattern.

`*` matches any characters of one component and `?` matches one; neither matches a slash, nor the leading dot
of a hidden file. In s3:// the parameters begin at the first `?` that a NAME= follows.

Invariant (S20): text that was written as a name matches that name alone.
Invariant (S24-locations): the secrets of a location are in no text that is shown.

Walk: `locations.Locations.resolve` and `files.open_files` call `parse`; code that shows a text that may be a
location calls `redacted`, or `cut_at_keys` if it may contain some.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple
from urllib.parse import unquote

from tenure.base.errors import InvalidParameter

TEXT_LENGTH_MAX = 4096
PART_BYTES_MAX = 255
"""The limit of file systems."""
STEM_BYTES_MAX = 120
"""For an object's name in a file's name: numbers and an ending have to fit beside it."""
PATH_BYTES_MAX = 1024
"""The limit of S3."""
PARTS_MAX = 64

OPTIONS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ENDPOINT",
    "AWS_REGION",
    "AUTH",
)
SHOWN_OPTIONS = ("AWS_ENDPOINT", "AWS_REGION", "AUTH")
REDACTED = "redacted"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_QUERY = re.compile(r"\?(?=[A-Za-z_][A-Za-z0-9_]*=)")
_SECRET = re.compile(r"aws_[a-z_]*=.*", re.IGNORECASE | re.DOTALL)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PLAIN = re.compile(r"[A-Za-z0-9_-]|\.(?!\.)")
_UNSEEN = ("Cc", "Cs", "Zl", "Zp")
"""Control characters, surrogates, line separators: they forge lines in displayed text."""


class Wild(Enum):
    ANY = "*"
    ONE = "?"


class Pattern(NamedTuple):
    pieces: tuple[str | Wild, ...]
    """Single characters and wildcards."""

    def matches(self, name: str) -> bool:
        """In time of name times pattern: only the last star backtracks."""
        if name.startswith(".") and self.pieces[0] != ".":
            return False
        at, piece, star, resume = 0, 0, -1, 0
        while at < len(name):
            wanted = self.pieces[piece] if piece < len(self.pieces) else None
            if wanted is Wild.ANY:
                star, resume = piece, at
                piece += 1
            elif wanted is Wild.ONE or wanted == name[at]:
                at += 1
                piece += 1
            elif star >= 0:
                resume += 1
                at, piece = resume, star + 1
            else:
                return False
        return all(each is Wild.ANY for each in self.pieces[piece:])


class LocationText(NamedTuple):
    scheme: str
    """`file` or `s3`."""
    bucket: str
    is_absolute: bool
    parts: tuple[str | Pattern, ...]
    options: Mapping[str, str]
    shown: str


def parse(text: str) -> LocationText:
    _check_text(text)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _local(text, text)
    rest = text[scheme.end() :]
    match scheme[1].lower():
        case "file":
            return _file(text, rest)
        case "s3":
            return _s3(text, rest)
        case other:
            raise InvalidParameter(
                f'location scheme "{other}" is not supported',
                hint="Locations are paths, file:// and s3://. A colon in a name is written %3A.",
            )


def redacted(text: str) -> str:
    """A text that may be a location, for messages, jobs and logs; in doubt it shows too little."""
    shown = "".join(character if _is_seen(character) else "�" for character in text[:TEXT_LENGTH_MAX])
    before, mark, query = shown.partition("?")
    if mark and "=" in query:
        shown = f"{before}?{REDACTED}"
    shown = _SECRET.sub(REDACTED, shown)
    scheme, mark, rest = shown.partition("://")
    authority, slash, path = rest.partition("/")
    if mark and "@" in authority:
        shown = f"{scheme}://{REDACTED}@{authority.rpartition('@')[2]}{slash}{path}"
    return shown


def cut_at_keys(text: str) -> str:
    """A longer text that may contain locations, cut at the first parameter of an object store."""
    return _SECRET.sub(REDACTED, text)


def escaped(name: str) -> str:
    """Any name (of a table, a column) as one component of a location that matches just this name."""
    return "".join(
        each if _PLAIN.match(name, at) and (at or each != ".") else _percent(each)
        for at, each in enumerate(name)
    )


def check_part(part: str, shown: str) -> str:
    """A component as it will be used, after decoding."""
    if fault := fault_of(part):
        raise InvalidParameter(f'location "{shown}" has {fault}: "{redacted(part[:PART_BYTES_MAX])}"')
    return part


def fault_of(part: str) -> str:
    """The fault of a name, or an empty text."""
    if part in ("", ".", ".."):
        return "a part without a name"
    if "/" in part or "\\" in part:
        return "a slash or backslash in a name"
    if not all(map(_is_seen, part)):
        return "a control character in a name"
    if len(part.encode()) > PART_BYTES_MAX:
        return f"a name longer than {PART_BYTES_MAX} bytes"
    return ""


def file_stem(name: str) -> str:
    """A name as part of a file's: characters with a meaning to a file system or a shell become an
    underscore.
    """
    return re.sub(r"[^\w-]", "_", name).encode()[:STEM_BYTES_MAX].decode(errors="ignore")


def _check_text(text: str) -> None:
    if not text or len(text) > TEXT_LENGTH_MAX:
        raise InvalidParameter(f"a location has between 1 and {TEXT_LENGTH_MAX} characters")
    if not all(map(_is_seen, text)) or "\\" in text:
        raise InvalidParameter(f'location "{redacted(text)}" has a control character or a backslash')


def _file(text: str, rest: str) -> LocationText:
    for start in ("///", "//localhost/"):
        if rest.startswith(start):
            return _local(text, rest[len(start) - 1 :])
    raise InvalidParameter(
        f'location "{redacted(text)}" names another machine', hint="Write file:///path or a path."
    )


def _local(text: str, path: str) -> LocationText:
    shown = redacted(text)
    return LocationText("file", "", path.startswith("/"), _parts(path.removeprefix("/"), shown), {}, shown)


def _s3(text: str, rest: str) -> LocationText:
    path, *query = _QUERY.split(rest.removeprefix("//"), maxsplit=1)
    bucket, _, key = path.partition("/")
    if not rest.startswith("//") or not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise InvalidParameter(f'location "{redacted(text)}" does not name a bucket')
    if _SECRET.search(path):
        raise InvalidParameter(
            f'location "{redacted(text)}" has a parameter in its path',
            hint="The first follows a ?, others a &.",
        )
    options = _options(query[0] if query else "", redacted(text))
    shown_options = [f"{name}={options[name] if name in SHOWN_OPTIONS else REDACTED}" for name in options]
    shown = "?".join([redacted(f"s3://{path}"), *(["&".join(shown_options)] if options else [])])
    return LocationText("s3", bucket, True, _parts(key, shown), options, shown)


def _options(query: str, shown: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        if name not in OPTIONS or name in options:
            raise InvalidParameter(
                f'location "{shown}" has a parameter that is unknown or given twice',
                hint=f"There are {', '.join(OPTIONS)}.",
            )
        options[name] = _decode(value, shown)
        if not options[name] or not options[name].isprintable() or not options[name].isascii():
            raise InvalidParameter(f'parameter "{name}" of location "{shown}" is not valid')
    return options


def _parts(path: str, shown: str) -> tuple[str | Pattern, ...]:
    if "#" in path:
        raise InvalidParameter(f'location "{shown}" has a "#"', hint="In a name it is written %23.")
    parts = (
        tuple(_part(raw, shown) for raw in path.removesuffix("/").split("/")) if path not in ("", "/") else ()
    )
    size = sum(len(part.encode()) + 1 for part in parts if isinstance(part, str))
    if len(parts) > PARTS_MAX or size > PATH_BYTES_MAX:
        raise InvalidParameter(f"a location has at most {PARTS_MAX} parts and {PATH_BYTES_MAX} bytes")
    return parts


def _part(raw: str, shown: str) -> str | Pattern:
    pieces = re.split(r"([*?])", raw)
    check_part("".join(decoded := [_decode(piece, shown) for piece in pieces]), shown)
    if len(pieces) == 1:
        return decoded[0]
    if "**" in raw:
        raise InvalidParameter(f'location "{shown}" has "**"', hint="A star stays within one directory.")
    return Pattern(
        tuple(
            each
            for raw_piece, piece in zip(pieces, decoded, strict=True)
            for each in ([Wild(raw_piece)] if raw_piece in ("*", "?") else piece)
        )
    )


def _decode(raw: str, shown: str) -> str:
    if _BAD_ESCAPE.search(raw):
        raise InvalidParameter(
            f'location "{shown}" has a "%" without two hexadecimal digits',
            hint="A percent sign is written %25.",
        )
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise InvalidParameter(f'location "{shown}" has an escape that is not UTF-8') from None


def _is_seen(character: str) -> bool:
    return unicodedata.category(character) not in _UNSEEN


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())
