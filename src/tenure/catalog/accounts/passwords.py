"""Stored passwords: never the password itself, only a verifier that checks a proof of it.

    SCRAM-SHA-256$10000:<salt>$<StoredKey>:<ServerKey>      as PostgreSQL stores and reads it

    SaltedPassword = PBKDF2(password, salt, iterations)
    StoredKey      = H(HMAC(SaltedPassword, "Client Key"))    checks the client's proof
    ServerKey      = HMAC(SaltedPassword, "Server Key")       signs the server's answer

A reader of the store can impersonate the server to a client, but cannot log in. A password goes through
SASLprep first, and is used unchanged where that refuses it, as PostgreSQL and its clients do.

Invariant (no-password-kept): what `stored_password` returns does not contain the password.

Walk: CREATE USER calls `stored_password` before anything is written; `pgwire.login.scram` and the console
check against `Verifier`.
"""

import binascii
import hmac
import re
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac, sha256
from typing import NamedTuple

from tenure.base.errors import InvalidParameter, NotSupported

ITERATIONS = 10_000
"""2.4 ms in C, 30 ms for a client that computes in Python; RFC 7677 wants at least 4,096."""
ITERATIONS_MIN = 4_096
SALT_BYTES, KEY_BYTES = 16, 32
SALT_BYTES_MAX = 64

_SCHEME = "SCRAM-SHA-256"
_STORED = re.compile(rf"{_SCHEME}\$([0-9]{{1,9}}):([^$:]*)\$([^$:]*):([^$:]*)")
_MD5 = re.compile("md5[0-9a-f]{32}")


class Verifier(NamedTuple):
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = (b64encode(each).decode() for each in self[1:])
        return f"{_SCHEME}${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        return f"Verifier(iterations={self.iterations}, ...)"

    def matches(self, password: str) -> bool:
        """For a door that receives the password itself."""
        verifier = verifier_of(password, salt=self.salt, iterations=self.iterations)
        return hmac.compare_digest(verifier.stored_key, self.stored_key)


def stored_password(text: str, *, salt: bytes) -> str:
    """The text to store for PASSWORD '...': a verifier, computed or taken as written. "" for an empty
    password, which counts as none; PostgreSQL says so in a notice.

    Raises NotSupported for an md5 hash, InvalidParameter for a verifier with too few iterations.
    """
    if _MD5.fullmatch(text):
        raise NotSupported("passwords hashed with md5 are not supported", hint="Give the password itself.")
    verifier = parse_verifier(text)
    if verifier is None:
        return str(verifier_of(text, salt=salt)) if text else ""
    if verifier.iterations < ITERATIONS_MIN:
        raise InvalidParameter(f"a SCRAM verifier needs at least {ITERATIONS_MIN} iterations")
    return "" if verifier.matches("") else str(verifier)


def parse_verifier(text: str) -> Verifier | None:
    """None if the text is no verifier: then it is a password."""
    found = _STORED.fullmatch(text)
    if found is None:
        return None
    try:
        salt, stored_key, server_key = (b64decode(each, validate=True) for each in found.groups()[1:])
    except (binascii.Error, ValueError):
        return None
    is_whole = len(stored_key) == len(server_key) == KEY_BYTES and 0 < len(salt) <= SALT_BYTES_MAX
    iterations = int(found.group(1))
    return Verifier(iterations, salt, stored_key, server_key) if is_whole and iterations else None


def verifier_of(password: str, *, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    salted = pbkdf2_hmac("sha256", prepared(password), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", sha256)
    return Verifier(iterations, salt, sha256(client_key).digest(), hmac.digest(salted, b"Server Key", sha256))


def mock_verifier(user: str, secret: bytes) -> Verifier:
    """For a user that does not exist or has no password: always the same for the same name, and no password
    matches it. `secret` is the cluster's, so that all nodes return the same.
    """

    def derived(purpose: bytes) -> bytes:
        return hmac.digest(secret, purpose + user.encode(errors="surrogatepass"), sha256)

    return Verifier(ITERATIONS, derived(b"salt:")[:SALT_BYTES], derived(b"stored:"), derived(b"server:"))


def prepared(password: str) -> bytes:
    """SASLprep (RFC 4013); the unchanged password where that refuses it."""
    if password.isascii():
        return password.encode()
    mapped = "".join(
        " " if stringprep.in_table_c12(each) else each
        for each in password
        if not stringprep.in_table_b1(each)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    is_fit = normal and not any(map(_is_prohibited, normal)) and _has_one_direction(normal)
    return (normal if is_fit else password).encode(errors="surrogatepass")


_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


def _is_prohibited(character: str) -> bool:
    return any(contains(character) for contains in _PROHIBITED)


def _has_one_direction(text: str) -> bool:
    """Text from right to left must begin and end so, and contain nothing that runs from left to right."""
    if not any(map(stringprep.in_table_d1, text)):
        return True
    ends_right = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return ends_right and not any(map(stringprep.in_table_d2, text))
