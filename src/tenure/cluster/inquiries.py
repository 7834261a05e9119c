"""Questions to all nodes: state that is only in a node's memory, reported through the store on request.

    asker:    inquiry (asker, number, subject) ──► waits for replies ──► deletes both
    others:   follow ──► the inquiry ──► reply (asker, number, own instance, part)

While nobody asks, nothing is written and nobody is woken. A reply is written in a transaction that reads its
inquiry, so none comes after the asker has gone on. A node that has not answered in time is reported as
silent: it may hang, or be dead and not yet known to be. Records of an asker that died meanwhile are deleted
by `tidy`, the slow step of any node.

Nodes without a door for clients are not asked; they have nothing to report.

Invariant (inquiries-leave-nothing): when an inquiry is over, its record and its replies are deleted.

Walk: `sql.tables.running` calls `ask`, which `composition.door_layer` hands to it; `composition.door_layer`
runs `follow` in a loop; `front` provides the answers.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple, TypeAlias

from tenure.base.errors import TenureError
from tenure.base.interruptible import Check
from tenure.base.timestamp import Timestamp
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.follower import ChangeWait, Follower
from tenure.kv.keys import INQUIRIES, REPLIES
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Revision

ANSWER_SECONDS = 2.0
"""How long to wait for answers: a healthy node answers in some milliseconds."""

LOOK_SECONDS = 0.1
"""The time between two checks whether the asker was canceled."""

PART_BYTES = 256 * 1024
"""A reply is split into records of about this size."""

FOLLOW_SECONDS = 1.0
SPACING_SECONDS = 0.01

_log = logging.getLogger(__name__)


class Inquiry(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    number: int
    subject: str

    @property
    def asker(self) -> SessionId:
        return SessionId(self.instance, self.epoch_at)


class Reply(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    number: int
    replier: int
    part: int
    items: tuple[bytes, ...]


class Answers(NamedTuple):
    items: Mapping[int, Sequence[bytes]]
    """The answer of each instance."""
    silent: Sequence[int]
    """The instances that have not answered in time."""


NOBODY = Answers({}, ())
Ask: TypeAlias = Callable[[str, Check], Answers]
"""Asks the other nodes about a subject."""


class Inquiries:
    def __init__(
        self, store: Store, sessions: Sessions, session: Callable[[], SessionId], *, needs: str
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._session = session
        self._needs = needs
        """The resource of an instance that makes it worth asking."""
        key = ("instance", "epoch_at", "number")
        self._inquiries = Records(store.keyspace, INQUIRIES, Inquiry, key=key)
        self._replies = Records(store.keyspace, REPLIES, Reply, key=(*key, "replier", "part"))
        self._numbers = count(1)
        self._follower = Follower(
            store, [self._inquiries.span()], self._reply_all, self._reply_new, spacing_seconds=SPACING_SECONDS
        )
        self.answer: Callable[[str], Sequence[bytes]] = lambda subject: ()
        """Returns this node's answer about a subject, from any thread; the front sets it."""

    # ── asking ─────────────────────────────────────────────────────────────────────────────────

    def ask(self, subject: str, check: Check) -> Answers:
        """Returns the other nodes' answers; `check` is called meanwhile, and raises to give up."""
        inquiry = Inquiry(*self._session(), next(self._numbers), subject)
        instances = self._store.transact(lambda txn: self._put(txn, inquiry))
        if not instances:
            return NOBODY
        try:
            return self._gather(inquiry, instances, check)
        finally:
            self._forget(inquiry)

    def _put(self, txn: Transaction, inquiry: Inquiry) -> set[int]:
        instances = self._others(txn, inquiry)
        if instances:
            self._inquiries.put(txn, inquiry)
        return instances

    def _others(self, source: Transaction | Snapshot, inquiry: Inquiry) -> set[int]:
        instances = self._sessions.instances.scan(source)
        return {each.id for each in instances if self._needs in each.has and each.id != inquiry.instance}

    def _gather(self, inquiry: Inquiry, instances: set[int], check: Check) -> Answers:
        env = self._store.env
        until = env.monotonic() + ANSWER_SECONDS
        key = (inquiry.instance, inquiry.epoch_at, inquiry.number)
        span = self._replies.span(*key)
        snapshot = self._store.snapshot()
        replies = ChangeWait(self._store, [span], since_at=snapshot.at, spacing_seconds=SPACING_SECONDS)
        try:
            while True:
                told = _by_replier(self._replies.scan(snapshot, *key))
                left = until - env.monotonic()
                if instances <= told.keys() or left <= 0:
                    break
                check()
                replies.wait(min(left, LOOK_SECONDS))
                snapshot = self._store.snapshot()
        finally:
            replies.close()
        # A node that has gone meanwhile has nothing to report.
        silent = (
            (instances - told.keys()) & self._others(snapshot, inquiry) if instances - told.keys() else set()
        )
        return Answers(told, sorted(silent))

    def _forget(self, inquiry: Inquiry) -> None:
        try:
            self._store.transact(lambda txn: self._delete(txn, inquiry))
        except TenureError as error:
            _log.info("an inquiry stays until its asker's session is gone: %s", error)

    def _delete(self, txn: Transaction, inquiry: Inquiry) -> None:
        key = (inquiry.instance, inquiry.epoch_at, inquiry.number)
        self._inquiries.delete(txn, *key)
        for reply in list(self._replies.scan(txn, *key)):
            self._replies.delete(txn, *key, reply.replier, reply.part)

    # ── answering ──────────────────────────────────────────────────────────────────────────────

    def follow(self) -> float:
        """Answers the inquiries of other nodes: one step for a loop."""
        self._follower.step(FOLLOW_SECONDS)
        return 0.0

    def _reply_all(self, snapshot: Snapshot) -> None:
        for inquiry in list(self._inquiries.scan(snapshot)):
            self._reply(inquiry)

    def _reply_new(self, revisions: Sequence[Revision]) -> None:
        for revision in revisions:
            if revision.value is not None:
                self._reply(self._inquiries.decode(revision.value))

    def _reply(self, inquiry: Inquiry) -> None:
        replier = self._session().instance
        if inquiry.instance == replier:
            return
        parts = _split(self.answer(inquiry.subject))

        def put(txn: Transaction) -> None:
            key = (inquiry.instance, inquiry.epoch_at, inquiry.number)
            if self._inquiries.get(txn, *key) is None:
                return  # the asker has gone on
            if self._replies.get(txn, *key, replier, 0) is not None:
                return  # answered before all inquiries were loaded again
            for number, items in enumerate(parts):
                self._replies.put(txn, Reply(*key, replier, number, items))

        self._store.transact(put)

    def tidy(self) -> None:
        """Deletes the records of askers that are gone: a slow step for a loop."""
        snapshot = self._store.snapshot()
        left = [
            each
            for each in self._inquiries.scan(snapshot)
            if self._sessions.find(snapshot, each.asker) is None
        ]
        for each in left:
            self._store.transact(lambda txn, each=each: self._delete(txn, each))  # type: ignore[misc]

    def wake(self) -> None:
        self._follower.wake()

    def close(self) -> None:
        self._follower.close()


def _by_replier(replies: Iterable[Reply]) -> dict[int, list[bytes]]:
    """The parts of a reply are committed together: a reader that sees one sees all."""
    told: dict[int, list[bytes]] = {}
    for reply in replies:
        told.setdefault(reply.replier, []).extend(reply.items)
    return told


def _split(items: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """At least one part: an empty answer is an answer."""
    parts: list[list[bytes]] = [[]]
    size = 0
    for item in items:
        if size + len(item) > PART_BYTES and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += len(item)
    return [tuple(each) for each in parts]
