"""A SCRAM client, written from RFC 5802 alone: it shares no code with the server."""

import hashlib
import hmac
from base64 import b64decode, b64encode

PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"


class ScramClient:
    def __init__(
        self,
        password: str,
        *,
        nonce: str = "rOprNGfwEbeRWgbNEkqO",
        header: str = "n,,",
        binding: bytes = b"",
        name: str = "",
    ) -> None:
        self.password = password
        self.nonce = nonce
        self.header = header
        self.binding = binding
        self.bare = f"n={name},r={nonce}"
        self.salted = b""
        self.signed = b""

    @property
    def mechanism(self) -> str:
        return PLUS if self.header.startswith("p=") else PLAIN

    def first(self) -> bytes:
        return (self.header + self.bare).encode()

    def final(self, answer: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in answer.decode().split(","))
        assert fields["r"].startswith(self.nonce)
        salt, iterations = b64decode(fields["s"]), int(fields["i"])
        self.salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), salt, iterations)
        channel = b64encode(self.header.encode() + self.binding).decode()
        without_proof = f"c={channel},r={fields['r']}"
        self.signed = f"{self.bare},{answer.decode()},{without_proof}".encode()
        key = _hmac(self.salted, b"Client Key")
        mask = _hmac(hashlib.sha256(key).digest(), self.signed)
        proof = bytes(a ^ b for a, b in zip(key, mask, strict=True))
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def accepts(self, signature: bytes) -> bool:
        expected = _hmac(_hmac(self.salted, b"Server Key"), self.signed)
        return signature == b"v=" + b64encode(expected)


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()
