"""Login rules: a decision over values, without effects.

    mode          from           TLS    root            other users
    LOCAL         this machine   -      let in          SCRAM
    INSECURE      this machine   -      let in          let in
    CERTIFICATE   this machine   either SCRAM           SCRAM
                  elsewhere      yes    SCRAM           SCRAM
                  elsewhere      no     refused         refused

Without a certificate a node listens on loopback only; connections from elsewhere would be refused. SCRAM
never reveals whether a user exists: one that does not, or has no password, goes through the same exchange and
fails (`pgwire.login.scram`).

Invariant (login-table): the table above, for every combination.

Walk: `pgwire.login.authenticator` calls `decide` when a start-up packet has come, and `admit` when the user
is authenticated.
"""

from dataclasses import dataclass
from enum import Enum

from tenure.base.errors import LoginRefused
from tenure.catalog.accounts.passwords import ITERATIONS, KEY_BYTES, SALT_BYTES, Verifier, parse_verifier
from tenure.catalog.accounts.users import User
from tenure.catalog.descriptors.definitions import ROOT

_DECOY = str(Verifier(ITERATIONS, bytes(SALT_BYTES), bytes(KEY_BYTES), bytes(KEY_BYTES)))
"""Parsed where there is no verifier, so that this takes as long as with one."""


class LoginMode(Enum):
    """How the node was started."""

    LOCAL = "local"
    INSECURE = "insecure"
    CERTIFICATE = "certificate"


@dataclass(frozen=True)
class Allow:
    pass


@dataclass(frozen=True)
class AskPassword:
    verifier: Verifier | None
    """None: no password is right, which the client is not told."""


@dataclass(frozen=True)
class Refuse:
    error: LoginRefused


Decision = Allow | AskPassword | Refuse


def decide(name: str, user: User | None, *, is_tls: bool, is_loopback: bool, mode: LoginMode) -> Decision:
    if not is_loopback and not is_tls:
        return Refuse(
            LoginRefused(
                "connections from other machines need TLS", hint="Connect with sslmode=require or stricter."
            )
        )
    if not is_loopback and mode is not LoginMode.CERTIFICATE:
        return Refuse(LoginRefused("this node accepts connections from its own machine only"))
    if mode is LoginMode.INSECURE or (mode is LoginMode.LOCAL and name == ROOT):
        error = admit(name, user)
        return Allow() if error is None else Refuse(error)
    kept = user.verifier if user is not None else ""
    verifier = parse_verifier(kept or _DECOY)
    return AskPassword(verifier if kept else None)


def admit(name: str, user: User | None) -> LoginRefused | None:
    """The refusal of an authenticated user, if it may not log in."""
    if user is None:
        return LoginRefused(f'role "{name}" does not exist')
    if not user.can_login:
        return LoginRefused(f'role "{name}" is not permitted to log in')
    return None
