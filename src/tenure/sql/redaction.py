"""Statements as they may be shown to others, kept in records and logged: without passwords.

Invariant (S24): the text of a statement that may give a password leaves its session without it.

Walk: `sql.session` keeps what `without_password` gives as what it is doing; sessions, leases and jobs tell.
"""

import re

_GAP = r"(?:\s|/\*.*?\*/|--[^\n]*\n)"
_ABOUT_USERS = re.compile(rf"{_GAP}*(create|alter){_GAP}+(user|role)\b", re.IGNORECASE | re.DOTALL)
_PASSWORD = re.compile(r"password", re.IGNORECASE)
OFTEN = frozenset("sSiIuUdD")
"""SELECT, INSERT, UPDATE, DELETE, SET, SHOW: nothing else needs to be quick."""


def without_password(text: str) -> str:
    """The text as it is, or of one about users no more than its first words."""
    if text[:1] in OFTEN:
        return text
    found = _ABOUT_USERS.match(text)
    if found is None or _PASSWORD.search(text) is None:
        return text
    return f"{found[1].upper()} {found[2].upper()} ..."
