"""Verifiers: PostgreSQL makes the same ones from the same passwords, and reads ours."""

from base64 import b64encode
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tenure.base.errors import UserError
from tenure.catalog.accounts.passwords import (
    ITERATIONS,
    ITERATIONS_MIN,
    SALT_BYTES,
    Verifier,
    mock_verifier,
    parse_verifier,
    prepared,
    stored_password,
    verifier_of,
)
from tests.postgres_server import Server

SALT = bytes(range(SALT_BYTES))
RFC_7677 = verifier_of("pencil", salt=bytes.fromhex("5b6d99689dfe20eba6f40a23c7ddf2"), iterations=4096)

PASSWORDS = [
    "pencil",
    " with spaces ",
    "I\u00adX",  # a soft hyphen is left out
    "\u00aa",  # becomes a
    "\u2168",  # becomes IX
    "a\u00a0b",  # a space of another kind
    "\u00ad",  # nothing is left
    "e\u0301",  # composed
    "\u0007\u00e9",  # prohibited: counts as it is
    "\u0627\u0031",  # from right to left, ends in a digit
    "\u0627\u0031\u0628",
    "\u0627x\u0628",  # both directions
    "\U0001f600",  # unassigned in Unicode 3.2
    "tab\tand\x7f",  # ASCII is never looked at
    "\u0221",
    "\ufb01ne \uff21",
]


NAME = f"kept_{uuid4().hex}"
ROLE = sql.Identifier(NAME)
"""The server is shared by all workers of a run, and its roles are too."""


@pytest.fixture(scope="module")
def superuser(postgres: Server) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {}").format(ROLE))
        yield connection
        connection.execute(sql.SQL("DROP ROLE {}").format(ROLE))


def _kept_by_postgresql(superuser: psycopg.Connection, password: str) -> str:
    superuser.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(ROLE, password))
    row = superuser.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [NAME]).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize("password", PASSWORDS)
def test_postgresql_derives_the_same_keys(superuser: psycopg.Connection, password: str) -> None:
    kept = _kept_by_postgresql(superuser, password)
    theirs = parse_verifier(kept)
    assert theirs is not None
    assert str(verifier_of(password, salt=theirs.salt, iterations=theirs.iterations)) == kept


def test_postgresql_takes_a_verifier_as_it_is(superuser: psycopg.Connection) -> None:
    ours = stored_password("pencil", salt=SALT)
    assert _kept_by_postgresql(superuser, ours) == ours


def test_rfc_4013_examples_are_prepared_as_it_says() -> None:
    given = ["I\u00adX", "user", "USER", "\u00aa", "\u2168"]
    assert [prepared(each) for each in given] == [b"IX", b"user", b"USER", b"a", b"IX"]


def test_half_a_surrogate_pair_does_no_harm() -> None:
    assert verifier_of("\ud800", salt=SALT).iterations == ITERATIONS


@pytest.mark.invariant("no-password-kept")
def test_a_password_is_not_in_what_is_kept() -> None:
    kept = stored_password("correct horse", salt=SALT)
    assert "correct horse" not in kept and b64encode(b"correct horse").decode() not in kept
    assert kept.startswith(f"SCRAM-SHA-256${ITERATIONS}:{b64encode(SALT).decode()}$")
    assert ITERATIONS >= ITERATIONS_MIN


def test_a_verifier_that_is_given_is_kept_as_it_is() -> None:
    assert stored_password(str(RFC_7677), salt=SALT) == str(RFC_7677)


def test_a_verifier_comes_back_from_its_text() -> None:
    assert parse_verifier(str(RFC_7677)) == RFC_7677


def test_a_verifier_matches_its_password_alone() -> None:
    assert RFC_7677.matches("pencil")
    assert not RFC_7677.matches("Pencil")


@pytest.mark.parametrize(
    "text",
    [
        "pencil",
        "SCRAM-SHA-256$",
        "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA",
        "SCRAM-SHA-1$4096:AAAA$AAAA:AAAA",
        str(RFC_7677).replace("4096", "0"),
        str(RFC_7677).replace("4096", "9" * 30),
        str(RFC_7677) + "\n",
        str(RFC_7677)[:-1],
        str(RFC_7677).replace(":", ":!", 1),
    ],
)
def test_what_only_looks_like_a_verifier_is_a_password(text: str) -> None:
    assert parse_verifier(text) is None
    kept = parse_verifier(stored_password(text, salt=SALT))
    assert kept is not None and kept.matches(text)


def test_an_empty_password_is_none() -> None:
    assert stored_password("", salt=SALT) == ""
    assert stored_password(str(verifier_of("", salt=SALT)), salt=SALT) == ""


def test_an_md5_hash_is_refused() -> None:
    with pytest.raises(UserError, match="md5") as caught:
        stored_password("md5" + "0a" * 16, salt=SALT)
    assert caught.value.sqlstate == "0A000"


def test_a_verifier_with_too_few_iterations_is_refused() -> None:
    with pytest.raises(UserError, match="4096") as caught:
        stored_password(str(verifier_of("pencil", salt=SALT, iterations=4095)), salt=SALT)
    assert caught.value.sqlstate == "22023"


def test_a_mock_verifier_is_the_same_for_the_same_user_and_secret() -> None:
    assert mock_verifier("nobody", b"secret") == mock_verifier("nobody", b"secret")
    assert mock_verifier("nobody", b"secret").salt != mock_verifier("somebody", b"secret").salt
    assert mock_verifier("nobody", b"secret").salt != mock_verifier("nobody", b"other").salt


def test_a_mock_verifier_looks_like_one_that_was_just_made() -> None:
    mock, made = mock_verifier("nobody", b"secret"), verifier_of("x", salt=SALT)
    assert [len(each) for each in mock[1:]] == [len(each) for each in made[1:]]
    assert mock.iterations == made.iterations


def test_a_verifier_is_not_shown_by_accident() -> None:
    assert b64encode(RFC_7677.stored_key).decode() not in repr(RFC_7677)
    assert isinstance(RFC_7677, Verifier)
