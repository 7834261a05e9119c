"""The whole keyspace, on one page.

    +--------+--------+-------+------------------------------+
    | tenant | table  | index | key columns                  |
    | 4 bytes| 4 bytes| 2     | order-preserving (encoding)  |
    +--------+--------+-------+------------------------------+
    '-------- head: 10 -------'

    table       holds                                   key columns
    1           thresholds                              the ten bytes of the head they are for
    2           cleaned marks                           the ten bytes of the head they are for
    3           node sessions: existence                instance, epoch
    4           node sessions: expiration               instance, epoch
    5           node sessions: freeze marks             instance, epoch
    6           instances                               instance
    7           cluster settings                        name
    8           jobs                                    id
    9           jobs: control of open ones              id
    10          jobs: control of ended ones             id
    11          jobs: progress                          id
    12          heartbeats of version 1                 instance
    13          descriptors                             id
    14          names                                   database, schema, name
    15          databases' maps of their schemas        database, name
    16          schema leases                           lease timestamp, instance, epoch
    17          leases by descriptor, of version 1      descriptor, version, instance, start
    18          waits for leases                        instance, epoch, number
    19          the next descriptor id                  nothing
    20          the protections' meta record            nothing
    21          zones                                   descriptor, index
    22          node sessions: lanes of the dead        instance, epoch
    23          users of stores from before roles       name
    24          row locks                               name of the row, instance, epoch, ticket
    25          values of sequences                     descriptor
    26          advisory locks                          name of the lock, instance, epoch, ticket
    27          the cluster's secrets                   name
    28          requests to cancel                      pid, digest of the secret
    29          the lake's manifests                    table, index
    30          the lake's files that were dropped      name
    31          merges under way                        table, index
    32          which lake is the store's               nothing
    33          locks of tables                         name of the lock, instance, epoch, ticket
    34          inquiries of nodes                      instance, epoch, number
    35          replies to inquiries                    instance, epoch, number, replier, part
    36          protections                             id
    37          sweeps                                  the ten bytes of the head they are for
    38          named snapshots                         name
    39          the sweep that the schedule has started nothing
    40          protections of jobs                     id of the job
    49          temporary objects                       instance, epoch, id
    50          roles                                   name
    51          memberships of roles                    role, member, grantor
    52          privileges on objects                   descriptor, column
    53          default privileges                      role, schema, kind
    54          what refers to a role                   role, kind, descriptor, column
    55          verifiers of passwords                  role
    60          notifications                           instance, epoch, transaction, digest
    .. 99       system records, as later layers add them
    100 ..      tables of users

The tenant comes first, so that all of a tenant is one span and no key of one tenant can be written with
another's `Keyspace`. The head groups keys that change together: the engines index changes by (head, at), and
thresholds and cleaned marks are kept per head, because an index is collected and flushed as a whole.

Walk: `kv.store` owns a `Keyspace`; `kv.records` and the layers above make keys with it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tenure.kv.encoding import KeyValue, encode, prefix_end
from tenure.storage.engine import HEAD_BYTES, Guard

THRESHOLDS = 1
CLEANED_MARKS = 2
SESSIONS = 3
EXPIRATIONS = 4
FREEZES = 5
INSTANCES = 6
SETTINGS = 7
JOBS = 8
JOB_CONTROL = 9
JOBS_ENDED = 10
JOB_PROGRESS = 11
OLD_HEARTBEATS = 12
DESCRIPTORS = 13
NAMES = 14
SCHEMA_MAPS = 15
SCHEMA_LEASES = 16
OLD_LEASES = 17
LEASE_WAITS = 18
DESCRIPTOR_IDS = 19
PROTECTIONS_META = 20
ZONES = 21
DEAD_LANES = 22
USERS = 23
ROW_LOCKS = 24
SEQUENCE_VALUES = 25
ADVISORY_LOCKS = 26
CLUSTER_SECRETS = 27
CANCELS = 28
MANIFESTS = 29
DROPPED_FILES = 30
MERGES = 31
STORE_LAKE = 32
TABLE_LOCKS = 33
INQUIRIES = 34
REPLIES = 35
PROTECTIONS = 36
SWEEPS = 37
SNAPSHOTS = 38
SWEEP_ROUND = 39
JOB_PROTECTIONS = 40
TEMPORARY_OBJECTS = 49
ROLES = 50
MEMBERSHIPS = 51
PRIVILEGES = 52
DEFAULT_PRIVILEGES = 53
ROLE_OBJECTS = 54
PASSWORDS = 55
NOTIFICATIONS = 60
USER_TABLES = 100

PRIMARY = 1
"""The index id of system records, which have only one index."""

KEY_BYTES_MAX = 2_000
"""The longest key: PostgreSQL indexes some 2,700 bytes, less its page overhead."""

TENANT_MAX = (1 << 32) - 2
TABLE_MAX = (1 << 32) - 2
INDEX_MAX = (1 << 16) - 2


class Span(NamedTuple):
    """A half-open interval of keys."""

    lo: bytes
    hi: bytes


def disjoint(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sorts spans and joins those that touch."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.lo <= joined[-1].hi:
            joined[-1] = Span(joined[-1].lo, max(joined[-1].hi, span.hi))
        else:
            joined.append(span)
    return tuple(joined)


class Keyspace:
    """Makes the keys of one tenant."""

    def __init__(self, tenant: int) -> None:
        assert 0 < tenant <= TENANT_MAX, f"tenant {tenant} is out of range"
        self.tenant = tenant
        self.prefix = tenant.to_bytes(4, "big")
        self._end = prefix_end(self.prefix)
        self._guards: dict[bytes, Guard] = {}
        self._threshold_head = self.head(THRESHOLDS)
        self._cleaned_head = self.head(CLEANED_MARKS)

    def head(self, table: int, index: int = PRIMARY) -> bytes:
        assert 0 < table <= TABLE_MAX and 0 < index <= INDEX_MAX, f"no such index: {table}/{index}"
        return self.prefix + table.to_bytes(4, "big") + index.to_bytes(2, "big")

    def key(self, table: int, values: Iterable[KeyValue], index: int = PRIMARY) -> bytes:
        return self.head(table, index) + encode(values)

    def all(self) -> Span:
        return Span(self.prefix, self._end)

    def table_span(self, table: int) -> Span:
        prefix = self.prefix + table.to_bytes(4, "big")
        return Span(prefix, prefix_end(prefix))

    def index_span(self, table: int, index: int = PRIMARY) -> Span:
        return self.head_span(self.head(table, index))

    def head_span(self, head: bytes) -> Span:
        return Span(head, prefix_end(head))

    def prefix_span(self, table: int, values: Iterable[KeyValue], index: int = PRIMARY) -> Span:
        """All keys of an index that begin with these columns."""
        prefix = self.key(table, values, index)
        return Span(prefix, prefix_end(prefix))

    def owns(self, key: bytes) -> bool:
        return key.startswith(self.prefix)

    def owns_span(self, span: Span) -> bool:
        return span.lo.startswith(self.prefix) and span.hi <= self._end

    def table_and_index(self, head: bytes) -> tuple[int, int]:
        """The table and index of a head."""
        return int.from_bytes(head[4:8], "big"), int.from_bytes(head[8:HEAD_BYTES], "big")

    def threshold_key(self, head: bytes) -> bytes:
        return self._threshold_head + head

    def cleaned_key(self, head: bytes) -> bytes:
        return self._cleaned_head + head

    def marked_heads(self, keys: Iterable[bytes]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """The indexes whose cleaned marks have one of these keys, and those whose thresholds do."""
        marks = [key for key in keys if key.startswith((self._threshold_head, self._cleaned_head))]
        cleaned = [key[HEAD_BYTES:] for key in marks if key.startswith(self._cleaned_head)]
        thresholds = [key[HEAD_BYTES:] for key in marks if key.startswith(self._threshold_head)]
        return tuple(cleaned), tuple(thresholds)

    def point_guard(self, key: bytes) -> Guard:
        """The location of the marks of one key's index; cached, because every read needs it."""
        head = key[:HEAD_BYTES]
        guard = self._guards.get(head)
        if guard is None:
            threshold, cleaned = self.threshold_key(head), self.cleaned_key(head)
            guard = self._guards[head] = Guard(threshold, threshold, cleaned, cleaned)
        return guard

    def guard(self, span: Span) -> Guard:
        """The location of the marks of all indexes that a span touches."""
        first = span.lo[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
        last = _last_head(span.hi)
        if first == last:
            return self.point_guard(first)
        return Guard(
            self.threshold_key(first),
            self.threshold_key(last),
            self.cleaned_key(first),
            self.cleaned_key(last),
        )


def _last_head(hi: bytes) -> bytes:
    """The greatest head that a key below `hi` can have."""
    head = hi[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
    if len(hi) > HEAD_BYTES:
        return head
    return (int.from_bytes(head, "big") - 1).to_bytes(HEAD_BYTES, "big")
