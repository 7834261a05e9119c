"""SCRAM-SHA-256, the server's side, as a state machine free of I/O (RFC 5802, RFC 7677).

    client                                        server
    SCRAM-SHA-256[-PLUS], n,,n=,r=<nonce>    ─►   begin
                                             ◄─   r=<nonce><server nonce>,s=<salt>,i=<iterations>
    c=<binding>,r=<both>,p=<proof>           ─►   finish
                                             ◄─   v=<signature>, or the same 28P01 for every reason

    proof = ClientKey XOR HMAC(StoredKey, all messages so far)

A user that does not exist, or has no password, goes through the exchange with a mock verifier: same messages,
same work, and a proof that is never right. With TLS, -PLUS binds the exchange to the server's certificate; a
client that could have used it and says that it was not offered (flag `y`) was deceived by a man in the
middle, and is refused.

Invariant (scram-unknown-user): messages and work are the same whether the user exists or not.
Invariant (scram-once): an exchange is finished once; messages of another exchange do not finish it.
Invariant (scram-bound): with a channel to bind to, a man in the middle cannot remove the binding.

Walk: `pgwire.login.authenticator` makes one per login; the connection carries its messages.
"""

import binascii
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from enum import Enum
from hashlib import sha256

from tenure.base.errors import LoginRefused, ProtocolViolation, WrongPassword
from tenure.catalog.accounts.passwords import KEY_BYTES, Verifier, mock_verifier

PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
BINDING_TYPE = "tls-server-end-point"
NONCE_BYTES = 18
MESSAGE_BYTES_MAX = 4_096
"""The longest client message: a nonce and a proof take some hundred bytes."""

_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_FIRST = re.compile(rf"(n|y|p=([A-Za-z0-9.-]+)),(a=[^,]*)?,(n=[^,]*,r=({_NONCE})(?:,[a-zA-Z]=[^,]*)*)")
_FINAL = re.compile(rf"(c=([A-Za-z0-9+/=]+),r=({_NONCE})(?:,[a-oq-zA-Z]=[^,]*)*),p=([A-Za-z0-9+/=]+)")


def server_nonce() -> str:
    return b64encode(secrets.token_bytes(NONCE_BYTES)).decode()


class _State(Enum):
    BEGIN = "begin"
    FINISH = "finish"
    OVER = "over"


class Scram:
    def __init__(
        self,
        user: str,
        verifier: Verifier | None,
        *,
        nonce: str,
        mock_secret: bytes,
        binding: bytes | None = None,
    ) -> None:
        """`binding` is the hash of the server's certificate; None or empty where there is none to bind to."""
        mock = mock_verifier(user, mock_secret)
        self._user = user
        self._is_mock = verifier is None
        self._verifier = mock if verifier is None else verifier
        self._nonce = nonce
        self._binding = binding or b""
        self._state = _State.BEGIN
        self._messages = ""
        self._expected_binding = ""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """As offered, the best one first."""
        return (PLUS, PLAIN) if self._binding else (PLAIN,)

    def begin(self, mechanism: str, first: bytes | None) -> bytes:
        """Raises ProtocolViolation or LoginRefused."""
        self._step(_State.BEGIN, _State.FINISH)
        if mechanism not in self.mechanisms:
            raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
        found = _FIRST.fullmatch(_text(first or b""))
        if found is None:
            raise _malformed("The client-first-message cannot be read.")
        flag, binding_type, identity, bare, client_nonce = found.groups()
        if identity is not None:
            raise LoginRefused("client uses authorization identity, but it is not supported")
        self._check_flag(mechanism, flag, binding_type)
        data = self._binding if mechanism == PLUS else b""
        self._expected_binding = b64encode(f"{flag},,".encode() + data).decode()
        self._nonce = client_nonce + self._nonce
        salt = b64encode(self._verifier.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._messages = f"{bare},{answer}"
        return answer.encode()

    def finish(self, final: bytes) -> bytes:
        """Raises WrongPassword; for malformed messages, the errors of `begin`."""
        self._step(_State.FINISH, _State.OVER)
        found = _FINAL.fullmatch(_text(final))
        if found is None:
            raise _malformed("The client-final-message cannot be read.")
        without_proof, binding, nonce, proof_text = found.groups()
        if not hmac.compare_digest(nonce, self._nonce):
            raise ProtocolViolation("invalid SCRAM response", detail="Nonce does not match.")
        if not hmac.compare_digest(binding, self._expected_binding):
            raise LoginRefused("SCRAM channel binding check failed")
        signed = f"{self._messages},{without_proof}".encode()
        is_right = self._is_proof(_proof(proof_text), signed)
        signature = hmac.digest(self._verifier.server_key, signed, sha256)
        if self._is_mock or not is_right:
            raise WrongPassword(self._user)
        return b"v=" + b64encode(signature)

    def _step(self, expected: _State, following: _State) -> None:
        """A step that fails cannot be tried again."""
        if self._state is not expected:
            self._state = _State.OVER
            raise ProtocolViolation("unexpected SASL message")
        self._state = following

    def _check_flag(self, mechanism: str, flag: str, binding_type: str | None) -> None:
        if flag == "y" and self._binding:
            raise LoginRefused(
                "SCRAM channel binding negotiation error",
                detail="The client supports SCRAM channel binding but thinks the server does not. "
                "However, this server does support channel binding.",
            )
        if (mechanism == PLUS) != (binding_type is not None):
            raise _malformed(f"The flag of the client-first-message does not go with {mechanism}.")
        if binding_type not in (None, BINDING_TYPE):
            raise ProtocolViolation(f'unsupported SCRAM channel-binding type "{binding_type}"')

    def _is_proof(self, proof: bytes, signed: bytes) -> bool:
        client_signature = hmac.digest(self._verifier.stored_key, signed, sha256)
        client_key = bytes(a ^ b for a, b in zip(proof, client_signature, strict=True))
        return hmac.compare_digest(sha256(client_key).digest(), self._verifier.stored_key)


def _text(message: bytes) -> str:
    if len(message) > MESSAGE_BYTES_MAX:
        raise _malformed("The message is too long.")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise _malformed("The message is no UTF-8.") from None


def _proof(text: str) -> bytes:
    try:
        proof = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        proof = b""
    if len(proof) != KEY_BYTES:
        raise _malformed("Malformed proof in client-final-message.")
    return proof


def _malformed(detail: str) -> ProtocolViolation:
    return ProtocolViolation("malformed SCRAM message", detail=detail)
