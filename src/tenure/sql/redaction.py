"""Statements as they may be shown to others, kept in records and logged: without passwords and keys.

Invariant (S24): the text of a statement that may give a password, or the keys of an object store, leaves
its session without them.

Walk: `sql.session` keeps what `without_password` gives as what it is doing; sessions, leases and jobs tell.
"""

import re

from tenure.sql import parse
from tenure.sql.parse import SyntaxFault, TooComplex

OFTEN = frozenset("sSiIuUdD")
"""SELECT, INSERT, UPDATE, DELETE, SET, SHOW: nothing else needs to be quick."""

ABOUT_USERS = ("user", "role", "group")
HIDDEN = "..."
_KEYS = re.compile(r"(aws[a-z_]*=)[^&'\"\s]*", re.IGNORECASE)
"""In the locations of bulk statements."""


def without_password(text: str) -> str:
    """The text as it is, or of one about users no more than its first words."""
    if "aws" in text or "AWS" in text:
        text = _KEYS.sub(lambda found: found[1] + HIDDEN, text)
    if text[:1] in OFTEN or "password" not in text.lower():
        return text
    try:
        words = [each.text.lower() for each in parse.tokens(text)[:2]]
    except (SyntaxFault, TooComplex):
        return HIDDEN
    if words[:1] not in (["create"], ["alter"]) or words[1:] not in ([each] for each in ABOUT_USERS):
        return text
    return f"{' '.join(words).upper()} {HIDDEN}"
