"""Unicode's normal forms: normalize and is_normalized.

Long texts are cut before letters that never combine with a preceding one. Python sorts the marks that follow
one letter by insertion, in quadratic time, so more than `MARKS_MAX` of them are refused (54000).

Walk: `expr.functions.text_coding` lists the functions.
"""

import re
from collections.abc import Iterator
from typing import Literal
from unicodedata import is_normalized, normalize

from tenure.base.errors import InvalidParameter, LimitExceeded
from tenure.base.interruptible import check_now
from tenure.expr.functions.function import Function, function
from tenure.expr.types.text_slices import SLICE

MARKS_MAX = 10_000

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")

_LONE = re.compile(
    r"[\x01-\u02ff\u0391-\u03a9\u03b1-\u03c9\u0410-\u044f\u05d0-\u05ea\u0621-\u064a\u0905-\u0939\u0e01-\u0e30"
    r"\u2010-\u2027\u3001-\u3020\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3\U0001f300-\U0001faff]"
)
"""Letters that combine with nothing before them: of the common scripts, signs and pictures."""


def functions() -> Iterator[Function]:
    yield function("normalize", "text, text -> text", lambda text, form: _normalized(text, _form(form)))
    yield function("normalize", "text -> text", lambda text: _normalized(text, "NFC"))
    yield function(
        "is_normalized", "text, text -> bool", lambda text, form: _is_normalized(text, _form(form))
    )
    yield function("is_normalized", "text -> bool", lambda text: _is_normalized(text, "NFC"))


def _form(name: str) -> Form:
    upper = name.upper() if len(name) <= len("NFKC") else name
    for each in FORMS:
        if each == upper:
            return each
    raise InvalidParameter(f"invalid normalization form: {name}")


def _normalized(text: str, form: Form) -> str:
    return "".join([normalize(form, each) for each in _parts(text)])


def _is_normalized(text: str, form: Form) -> bool:
    return all(is_normalized(form, each) for each in _parts(text))


def _parts(text: str) -> Iterator[str]:
    """The text in pieces that begin with a letter which combines with nothing before it."""
    if len(text) <= MARKS_MAX or text.isascii():
        yield text
        return
    at = 0
    while at < len(text):
        cut = _last_cut(text, at)
        yield text[at:cut]
        at = cut
        check_now()


def _last_cut(text: str, start: int) -> int:
    """Where the piece that begins at `start` ends. Raises LimitExceeded if it has too many marks in a row."""
    cut = start
    for found in _LONE.finditer(text, start + 1, start + SLICE):
        if found.start() - max(cut, start) > MARKS_MAX:
            break
        cut = found.start()
    end = min(len(text), start + SLICE)
    if end - cut <= MARKS_MAX and end == len(text):
        return end
    if cut > start:
        return cut
    raise LimitExceeded(f"more than {MARKS_MAX} characters without one that combines with none before it")
