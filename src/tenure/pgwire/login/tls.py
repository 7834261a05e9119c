"""TLS for the server: a context from two files, and the channel binding of logins.

The key's file must be readable by the node's user alone (0600), or belong to root with read access for its
group (0640), as PostgreSQL requires. TLS 1.2 is the oldest version.

    tls-server-end-point = hash of the certificate, by the hash function of its own signature;
                           SHA-256 where that is MD5 or SHA-1 (RFC 5929)

A certificate whose signature has no such function of its own (Ed25519) has no binding: then
SCRAM-SHA-256-PLUS is not offered. The function's name is read from the certificate with as much
DER as that takes.

Walk: `front` calls `load` once; the server hands the context to asyncio and `binding` to each login.
"""

import os
import ssl
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import new as new_hash
from pathlib import Path

from tenure.base.errors import UnfitCertificate

PROTOCOL = "postgresql"
"""The name that clients request by ALPN when they start with TLS at once."""

_OBJECT_ID, _FIRST_TAGGED = 0x06, 0xA0
_RSA = "2a864886f70d0101"  # 1.2.840.113549.1.1
_ECDSA = "2a8648ce3d0403"  # 1.2.840.10045.4.3
_NIST = "608648016503040"  # 2.16.840.1.101.3.4
_PSS = bytes.fromhex(_RSA + "0a")
_HASHES = {
    bytes.fromhex(id): name
    for id, name in {
        _RSA + "04": "sha256",  # with MD5
        _RSA + "05": "sha256",  # with SHA-1
        _RSA + "0b": "sha256",
        _RSA + "0c": "sha384",
        _RSA + "0d": "sha512",
        _RSA + "0e": "sha224",
        "2a8648ce3d0401": "sha256",  # ECDSA with SHA-1
        _ECDSA + "01": "sha224",
        _ECDSA + "02": "sha256",
        _ECDSA + "03": "sha384",
        _ECDSA + "04": "sha512",
        "2b0e03021a": "sha256",  # SHA-1 itself, named in PSS's parameters
        _NIST + "201": "sha256",
        _NIST + "202": "sha384",
        _NIST + "203": "sha512",
        _NIST + "204": "sha224",
    }.items()
}


@dataclass(frozen=True)
class Tls:
    context: ssl.SSLContext
    binding: bytes
    """For tls-server-end-point; empty if the certificate has none."""


def load(certificate: Path, key: Path) -> Tls:
    """Raises UnfitCertificate, which names the file."""
    _check_key_file(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 0  # sessions are not resumed: each login is bound to a handshake of its own
    context.set_alpn_protocols([PROTOCOL])
    try:
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise UnfitCertificate(
            f'could not load certificate file "{certificate}" with private key file "{key}": {_reason(error)}'
        ) from error
    return Tls(context, server_end_point(_first_certificate(certificate)))


def _check_key_file(key: Path) -> None:
    try:
        found = os.stat(key)
    except OSError as error:
        raise UnfitCertificate(f'could not access private key file "{key}": {error.strerror}') from error
    if not stat.S_ISREG(found.st_mode):
        raise UnfitCertificate(f'private key file "{key}" is not a regular file')
    if found.st_uid not in (0, os.geteuid()):
        raise UnfitCertificate(f'private key file "{key}" must be owned by the user of this process or root')
    open_to = stat.S_IRWXG | stat.S_IRWXO
    if found.st_uid == 0 and os.geteuid() != 0:
        open_to = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
    if found.st_mode & open_to:
        raise UnfitCertificate(
            f'private key file "{key}" has group or world access',
            detail="File must have permissions u=rw (0600) or less if owned by the user of this process, "
            "or permissions u=rw,g=r (0640) or less if owned by root.",
        )


def _no_passphrase() -> str:
    """Called for a key that is encrypted: there is nobody at a terminal to ask."""
    raise ValueError("the key is encrypted with a passphrase")


def _reason(error: Exception) -> str:
    return (
        error.reason.replace("_", " ").lower()
        if isinstance(error, ssl.SSLError) and error.reason
        else str(error)
    )


def _first_certificate(path: Path) -> bytes:
    text = path.read_text(encoding="utf-8", errors="replace")
    begin, end = text.find(ssl.PEM_HEADER), text.find(ssl.PEM_FOOTER)
    try:
        return ssl.PEM_cert_to_DER_cert(text[max(begin, 0) : end + len(ssl.PEM_FOOTER)])
    except ValueError as error:
        raise UnfitCertificate(f'certificate file "{path}" has no {ssl.PEM_HEADER}') from error


def server_end_point(certificate: bytes) -> bytes:
    """Returns the hash that both sides of a channel know; empty if none is defined. Takes DER."""
    name = _signature_hash(certificate)
    return new_hash(name, certificate).digest() if name else b""


def _signature_hash(certificate: bytes) -> str | None:
    """Certificate ::= SEQUENCE { the rest, SEQUENCE { algorithm, parameters }, signature }"""
    try:
        (_, whole), *_ = _elements(certificate)
        _, (_, algorithm), *_ = _elements(whole)
        (kind, id), *parameters = _elements(algorithm)
        if kind == _OBJECT_ID and id == _PSS and parameters:
            return _pss_hash(parameters[0][1])
    except ValueError:
        return None
    return _HASHES.get(id)


def _pss_hash(parameters: bytes) -> str | None:
    """SEQUENCE { [0] SEQUENCE { hash function, ... } DEFAULT SHA-1, ... }"""
    for tag, value in _elements(parameters):
        if tag == _FIRST_TAGGED:
            (_, function), *_ = _elements(value)
            (_, id), *_ = _elements(function)
            return _HASHES.get(id)
    return "sha256"


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the tag and contents of each value. Raises ValueError if one ends too early."""
    at = 0
    while at < len(data):
        length_at = at + 2
        tag, length = data[at], int.from_bytes(data[at + 1 : length_at], "big")
        if length & 0x80:  # a long form: so many bytes of length follow
            start, length_at = length_at, length_at + (length & 0x7F)
            length = int.from_bytes(data[start:length_at], "big")
        at = length_at + length
        if at > len(data):
            raise ValueError("the certificate ends too early")
        yield tag, data[length_at:at]
