"""Protections as records, and what they can protect.

    protect_at T       the revisions visible at T                 snapshot backups, exports, long statements
    protect_after T    all revisions visible at or after T        changefeeds, revision backups

A protection is made once and deleted once. Its `at` never changes if it is a `protect_at`; that of a
`protect_after` may move forward.

Walk: `protection_store` writes these, `protection_catalog` lists them, `tracking.tracker` caches them.
"""

from enum import Enum
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import PROTECTIONS, Keyspace, Span
from tenure.kv.records import Record, Records

ID_BYTES = 16

JOB = "job"
"""The kind of owner of a job's protection; its `meta` is that of `job_meta`."""


class Mode(Enum):
    AT = 1
    AFTER = 2


class Targets(NamedTuple):
    """What is to be protected."""

    objects: tuple[int, ...] = ()
    """Ids of databases, schemas and tables."""
    spans: tuple[Span, ...] = ()


class Protection(Record, frozen=True):
    id: bytes
    at: Timestamp
    mode: Mode
    meta_type: str
    """The kind of owner: a job, a session, a named snapshot."""
    meta: bytes
    """Which one, in the owner's own encoding."""
    objects: tuple[int, ...] = ()
    spans: tuple[tuple[bytes, bytes], ...] = ()
    expires_at: Timestamp | None = None
    """When its owner is ended for it; None: never. It moves with the time of a `protect_after`."""
    role: str = ""
    """The role that has asked for it, which leaves room for others; empty: the system."""


def job_meta(job: int) -> bytes:
    return str(job).encode()


def job_of(protection: Protection) -> int | None:
    """The id of the job that owns it; None if its owner is no job."""
    is_number = protection.meta_type == JOB and protection.meta.isdigit()
    return int(protection.meta) if is_number else None


def protections(keyspace: Keyspace) -> Records[Protection]:
    return Records(keyspace, PROTECTIONS, Protection, key=("id",))


def record_key(keyspace: Keyspace, id: bytes) -> bytes:
    return protections(keyspace).key(id)
