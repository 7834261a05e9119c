"""Letters in upper and lower case, one by one, by Unicode's simple mapping, wherever the server runs.

Walk: `expr.functions.text_functions` and `expr.functions.like` call these.
"""

from tenure.base.interruptible import paced
from tenure.expr.types.text_slices import mapped


def lower(text: str) -> str:
    return text.lower() if text.isascii() else mapped(text, _lower_each)


def upper(text: str) -> str:
    return text.upper() if text.isascii() else mapped(text, _upper_each)


def _lower_each(text: str) -> str:
    return "".join([_lower_one(each) for each in text])


def _upper_each(text: str) -> str:
    return "".join([_upper_one(each) for each in text])


def _lower_one(letter: str) -> str:
    lowered = letter.lower()
    return lowered if len(lowered) == 1 else lowered[0]


def _upper_one(letter: str) -> str:
    """Where the whole mapping gives several letters, the simple one is the title case or none."""
    for mapped_letter in (letter.upper(), letter.title()):
        if len(mapped_letter) == 1:
            return mapped_letter
    return letter


def initcap(text: str) -> str:
    letters, is_inside = [], False
    for each in paced(text):
        letters.append(_lower_one(each) if is_inside else _title_one(each))
        is_inside = each.isalnum()
    return "".join(letters)


def _title_one(letter: str) -> str:
    titled = letter.title()
    return titled if len(titled) == 1 else letter
