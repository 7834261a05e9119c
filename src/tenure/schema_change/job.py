"""The job that walks a change to its end, or reverses it.

    run       walks from the current state of the descriptors; a change made inside a transaction
              that never committed is only ever reversed
    revert    reverses the additions, and walks that to its end; a change that all readers
              see already goes on to its end instead, and the job says so

A run that has to fill an index of many rows may turn out to need Spark. Then the job is handed over as it is
(`cluster.jobs.runs.Lacking`), and a process that has Spark continues the walk; reversing needs none.

A failure in between is reported in the job's error, and the table is as it was.

Walk: `schema_change.changer` creates it; `composition.job_layer` hands `schema_change_kind` to the job
runner.
"""

from collections.abc import Callable
from typing import Protocol

from tenure.base.errors import NotCommitted, WrongState
from tenure.catalog.descriptors.definitions import Table
from tenure.catalog.descriptors.elements import is_shown
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.cluster.jobs.attempts import BLOCKED_ATTEMPTS_MAX
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.records import Record, pack, unpack
from tenure.kv.transaction import Transaction
from tenure.schema_change.stages import Work, WorkKind
from tenure.schema_change.walk import Walk

KIND = "schema change"


class ChangePayload(Record, frozen=True):
    descriptors: tuple[int, ...]
    is_in_transaction: bool = False
    """Whether a transaction was to take the last step itself."""


class SavedWork(Record, frozen=True):
    """Where each piece of work continues; None for a finished one."""

    starts: tuple[tuple[str, bytes | None], ...]
    is_turned: bool = False
    """Whether the change is being reversed."""
    is_committed: bool = False
    """Whether the transaction that declared it has taken its last step: written by that very commit."""


def is_committed(data: bytes) -> bool:
    """Whether a job's progress says that the transaction around its change has committed."""
    return bool(data) and unpack(data, SavedWork).is_committed


def is_taken_back(data: bytes) -> bool:
    """Whether a job's progress says that its change was reversed; otherwise it is public."""
    return bool(data) and unpack(data, SavedWork).is_turned


MakeWalk = Callable[..., Walk]


class IndexFill(Protocol):
    """Fills indexes of many rows under a job's run."""

    def fill(self, run: Run, table: Table, index: int, tell: Callable[[float, str], None]) -> bool: ...

    def discard(self, run: Run, table: int, index: int) -> bool: ...


def schema_change_kind(make_walk: MakeWalk, index_fill: IndexFill | None = None) -> JobKind:
    def walk_of(run: Run, *, is_back: bool = False) -> Walk:
        payload = unpack(run.job.payload, ChangePayload)
        waiter = LeaseWaiter(run.job.created_at, check=run.check)
        return make_walk(
            payload.descriptors,
            job=run.job.id,
            transact=run.transact,
            waiter=waiter,
            progress=RunProgress(run),
            locks_long_stages=not is_back,
            fill=None if index_fill is None else RunFill(index_fill, run, is_back=is_back),
        )

    def run(run: Run) -> None:
        walk = walk_of(run)
        payload = unpack(run.job.payload, ChangePayload)
        if payload.is_in_transaction and not is_committed(run.progress.data) and _is_open(walk):
            raise NotCommitted("the transaction that declared this change did not commit")
        walk.to_the_end()

    def revert(run: Run) -> None:
        walk = walk_of(run, is_back=True)
        data = run.progress.data
        has_strays = bool(walk.with_strays() or walk.marked()) and not is_committed(data)
        is_turned = walk.turn_round() or is_taken_back(data) or has_strays
        walk.to_the_end()
        walk.forget_references()
        walk.unmark()
        if not is_turned:
            raise WrongState("the change was public before it could be taken back; it is complete")

    return JobKind(run, revert, blocked_attempts_max=BLOCKED_ATTEMPTS_MAX)


def _is_open(walk: Walk) -> bool:
    """Whether the last step is missing: it leaves nothing half added, and no reference to something
    absent.
    """
    own = walk.own()
    is_unseen = any(isinstance(each, Table) and not is_shown(each) for each in own)
    return is_unseen or any(each.closed_by for each in own) or bool(walk.with_strays() or walk.marked())


class RunFill:
    """Fills under one run. A reversing run may be in any process, so it fills by transactions alone."""

    def __init__(self, index_fill: IndexFill, run: Run, *, is_back: bool) -> None:
        self._index_fill = index_fill
        self._run = run
        self._is_back = is_back

    def fill(self, table: Table, index: int, tell: Callable[[float, str], None]) -> bool:
        return not self._is_back and self._index_fill.fill(self._run, table, index, tell)

    def discard(self, table: int, index: int) -> bool:
        return self._index_fill.discard(self._run, table, index)


class RunProgress:
    """Stores in the job's progress where each piece of work continues."""

    def __init__(self, run: Run) -> None:
        self._run = run
        data = run.progress.data
        saved = unpack(data, SavedWork) if data else SavedWork(())
        self._starts = dict(saved.starts)
        self._is_turned = saved.is_turned
        self._is_committed = saved.is_committed
        self._told = ""
        self._shown = 0.0
        """The fraction that this run has reported; it never falls."""

    def start_of(self, work: Work) -> bytes | None:
        return self._starts.get(_name(work), b"")

    def save(self, work: Work, following: bytes | None) -> None:
        self._starts[_name(work)] = following
        status = f"{work.kind.value} {work.element}"
        self._run.checkpoint(fraction=self._fraction(), status=status, data=self._data())

    def told(self, work: Work, fraction: float, status: str) -> None:
        self._told = f"{work.kind.value} {work.element}: {status}"
        starts = {_name(work): b"", **self._starts}
        done = sum(start is None for start in starts.values())
        self._shown = max(self._shown, (done + fraction) / len(starts))
        self._run.checkpoint(fraction=self._fraction(), status=self._told, data=self._data())

    def filled(self, work: Work) -> None:
        self._starts[_name(work)] = None
        self._starts[_name(work._replace(kind=WorkKind.PROVE_UNIQUE))] = None
        self._run.checkpoint(fraction=self._fraction(), status=self._told, data=self._data())

    def turned(self, txn: Transaction) -> None:
        self._is_turned = True
        self._run.save(txn, fraction=self._fraction(), status="taking back", data=self._data())

    def _fraction(self) -> float:
        done = sum(start is None for start in self._starts.values())
        return max(self._shown, done / (len(self._starts) + 1))

    def _data(self) -> bytes:
        return pack(SavedWork(tuple(self._starts.items()), self._is_turned, self._is_committed))


def _name(work: Work) -> str:
    return f"{work.table}/{work.kind.value}/{work.element}"
