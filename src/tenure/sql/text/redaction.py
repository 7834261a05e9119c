"""Statements as they may be shown to others, kept in records and logged: without passwords and keys.

Invariant (S24): the text of a statement that may give a password, the keys of an object store or the address
of a changefeed's sink leaves its session without them.

Walk: `sql.clients.session` keeps what `without_secrets` gives as what it is doing; sessions, leases and jobs
tell.
"""

from tenure.base.errors import SyntaxFault, TooComplex
from tenure.sql.text import parse
from tenure.storage.location_text import cut_at_keys

OFTEN = frozenset("sSiIuUdD")
"""SELECT, INSERT, UPDATE, DELETE, SET, SHOW: nothing else needs to be quick. None takes a secret."""
NOT_OFTEN = frozenset("mM")
"""The second letter that distinguishes IMPORT from INSERT."""

ABOUT_USERS = ("user", "role", "group")
HIDDEN = "..."


def without_secrets(text: str) -> str:
    """The text unchanged; of statements about users only the first words, of others the part before a key."""
    if text[:1] in OFTEN and text[1:2] not in NOT_OFTEN:
        return text
    return cut_at_keys(_without_sink(_without_password(text)))


def _without_sink(text: str) -> str:
    """Of a statement about a changefeed, the part before its sink."""
    if "changefeed" not in text.lower():
        return text
    try:
        tokens = parse.tokens(text)
    except (SyntaxFault, TooComplex):
        return HIDDEN
    if [each.text.lower() for each in tokens[1:2]] != ["changefeed"]:
        return text
    sink = next((each for each in tokens if "://" in each.text), None)
    return text if sink is None else f"{text[: sink.start]}{HIDDEN}"


def _without_password(text: str) -> str:
    if "password" not in text.lower():
        return text
    try:
        words = [each.text.lower() for each in parse.tokens(text)[:2]]
    except (SyntaxFault, TooComplex):
        return HIDDEN
    if words[:1] not in (["create"], ["alter"]) or words[1:] not in ([each] for each in ABOUT_USERS):
        return text
    return f"{' '.join(words).upper()} {HIDDEN}"
