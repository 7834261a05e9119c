"""Locations in jobs' records: one with the keys of an object store is sealed.

    s3://bucket/a.csv?AWS_ACCESS_KEY_ID=...     ──► sealed:<nonce, encrypted text and tag, in base64>
    data/a.csv                                  ──► unchanged
    https://hooks.example.com/in/T01            ──► sealed: the path of a webhook may be a secret by itself

A job's record is shown by SQL, stays in the store's history, and is in copies of the store. A sealed text is
useless in any of these without the cluster's secret, which no SQL shows. It does not protect against a reader
of the whole store: against those, let nodes have the keys (AUTH=implicit).

The cipher is AES-256-GCM-SIV (RFC 8452), which two equal nonces do not break. A sealed text is bound to its
job, so that it opens in no other. `sealed:` is no scheme of locations, so a sealed text cannot be used in a
statement.

Invariant (S24-jobs): the keys of an object store are in no job's record.

Walk: the statements of jobs make their jobs' payloads with `sealed`; runs read them with `unsealed`.
"""

import secrets
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from tenure.base.errors import CorruptData
from tenure.catalog.accounts.cluster_secrets import ClusterSecrets
from tenure.kv.keys import Keyspace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.location_text import redacted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

NAME = "locations"
"""Bytes of the cluster's secret."""
PREFIX = "sealed:"
SECRET_BYTES, NONCE_BYTES = 32, 12


def sealed(txn: Transaction, keyspace: Keyspace, job: int, location: str, *, is_secret: bool = False) -> str:
    """`is_secret`: also if nothing in it looks like a secret."""
    if redacted(location) == location and not is_secret:
        return location  # it has no secrets
    secret = ClusterSecrets(keyspace).get_or_put(txn, NAME, secrets.token_bytes(SECRET_BYTES))
    nonce = secrets.token_bytes(NONCE_BYTES)
    hidden = _cipher(secret).encrypt(nonce, location.encode(), _belongs_to(job))
    return PREFIX + b64encode(nonce + hidden).decode()


def unsealed(txn: Transaction | Snapshot, keyspace: Keyspace, job: int, kept: str) -> str:
    if not kept.startswith(PREFIX):
        return kept
    secret = ClusterSecrets(keyspace).get(txn, NAME)
    if secret is None:
        raise CorruptData("a location that a job keeps is sealed, and the cluster has no secret for it")
    return _opened(secret, job, kept.removeprefix(PREFIX)).decode()


def _opened(secret: bytes, job: int, text: str) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        data = b64decode(text, validate=True)
        return _cipher(secret).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], _belongs_to(job))
    except (InvalidTag, ValueError) as error:
        raise CorruptData(
            f"a location of job {job} was sealed with another secret or for another job, or was changed"
        ) from error


def _cipher(secret: bytes) -> "AESGCMSIV":
    # Imported when there is something to seal: a node that never seals need not have OpenSSL twice in memory.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

    return AESGCMSIV(secret)


def _belongs_to(job: int) -> bytes:
    return f"location of job {job}".encode()
