"""Locations as jobs keep them: one with the keys of an object store is kept sealed.

    s3://bucket/a.csv?AWS_ACCESS_KEY_ID=...     ──► sealed:<nonce, tag and what it says, in base64>
    data/a.csv                                  ──► as it is

A job's record is shown by SQL, stays in the store's history, and goes where copies of the store go. What is
sealed is of no use in any of these without the cluster's secret, which no SQL shows. Against somebody
who can read the whole store it does not help: to be safe from those, let nodes have the keys (AUTH=implicit).

The cipher is SHAKE-256 over a key and a nonce that is used once, as a stream; HMAC-SHA-256 over both tells
what was changed. `sealed:` is no scheme of locations, so nobody can give a sealed text back in a statement.

Invariant (S24-jobs): the keys of an object store are in no job's record.

Walk: the statements of `bulk` make their jobs' payloads with `sealed`; runs read them with `unsealed`.
"""

import hmac
import secrets
from base64 import b64decode, b64encode
from hashlib import sha256, shake_256

from tenure.base.errors import CorruptData
from tenure.catalog.cluster_secrets import ClusterSecrets
from tenure.kv.keys import Keyspace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.location_text import redacted

NAME = "locations"
"""Of the cluster's secret."""
PREFIX = "sealed:"
SECRET_BYTES, NONCE_BYTES, TAG_BYTES = 32, 24, 32


def sealed(txn: Transaction, keyspace: Keyspace, location: str) -> str:
    if redacted(location) == location:
        return location  # nothing that would not be shown
    secret = ClusterSecrets(keyspace).made(txn, NAME, secrets.token_bytes(SECRET_BYTES))
    nonce = secrets.token_bytes(NONCE_BYTES)
    hidden = _mixed(secret, nonce, location.encode())
    return PREFIX + b64encode(nonce + _tag(secret, nonce + hidden) + hidden).decode()


def unsealed(txn: Transaction | Snapshot, keyspace: Keyspace, kept: str) -> str:
    if not kept.startswith(PREFIX):
        return kept
    data = b64decode(kept.removeprefix(PREFIX))
    nonce, tag = data[:NONCE_BYTES], data[NONCE_BYTES : NONCE_BYTES + TAG_BYTES]
    hidden = data[NONCE_BYTES + TAG_BYTES :]
    secret = ClusterSecrets(keyspace).get(txn, NAME)
    if secret is None or not hmac.compare_digest(tag, _tag(secret, nonce + hidden)):
        raise CorruptData("a location that a job keeps was sealed with another secret, or was changed")
    return _mixed(secret, nonce, hidden).decode()


def _mixed(secret: bytes, nonce: bytes, data: bytes) -> bytes:
    """Done twice, it gives back what it was given."""
    stream = shake_256(_derived(secret, b"seal") + nonce).digest(len(data))
    return bytes(one ^ other for one, other in zip(data, stream, strict=True))


def _tag(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(_derived(secret, b"tag"), data, sha256)


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hmac.digest(secret, purpose, sha256)
