"""PAUSE, RESUME and CANCEL of jobs, and SHOW JOBS, which can wait until they are done.

    PAUSE | RESUME | CANCEL  JOB n | JOBS n, n | JOBS (SELECT ...)  [AND WAIT]
    SHOW JOBS      SHOW JOB n | JOBS (SELECT ...)      SHOW JOB[S] WHEN COMPLETE n | (SELECT ...)

These statements write a request; the process that runs the job carries it out, and AND WAIT waits for that.
Inside a transaction block a request counts from the commit on. Users may see and control the jobs of their
own role and of those whose privileges it has, superusers all.

Walk: `statements.statement_table` -> `statements` -> `cluster.jobs.job_table`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from tenure.base.errors import (
    ActiveTransaction,
    DatatypeMismatch,
    InsufficientPrivilege,
    SyntaxFault,
    UnknownJob,
)
from tenure.catalog.accounts.rights import Rights
from tenure.cluster.jobs import job_waits
from tenure.cluster.jobs.job_states import TERMINAL, JobState
from tenure.cluster.jobs.job_table import Job, Jobs
from tenure.expr.types.datatype import Datum, Type
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Result, Statement
from tenure.sql.session.answers import ResultColumn
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.dml.queries import Select, plan_query
from tenure.sql.statements.show.shows import query
from tenure.sql.tables.node import jobs_at
from tenure.sql.text import parse
from tenure.sql.text.tenure_statements import TokenReader

LOOK_SECONDS = 0.2
"""How long a wait looks at nothing but the watch before it sees whether it was canceled."""

LISTED = (
    "SELECT job_id, job_type, description, user_name, status, running_status, created, started, finished, "
    "fraction_completed, error, coordinator_id FROM tenure_internal.jobs "
)
INTEGERS = ("int2", "int4", "int8")


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    ask: Callable[[Jobs, Transaction, int], None]
    is_done: Callable[[JobState], bool]
    """Whether the request has been carried out."""


VERBS = {
    "PAUSE": Verb("PAUSE", Jobs.request_pause, lambda state: state is JobState.PAUSED or state in TERMINAL),
    "RESUME": Verb("RESUME", Jobs.resume, lambda state: state is JobState.RUNNING or state in TERMINAL),
    "CANCEL": Verb("CANCEL", Jobs.request_cancel, TERMINAL.__contains__),
}


@dataclass(frozen=True, slots=True)
class ControlJobs:
    bulk: BulkServices
    verb: Verb
    ids: Select
    waits: bool
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    is_short: ClassVar[bool] = False

    @property
    def parameters(self) -> tuple[Type, ...]:
        return self.ids.parameters

    def run(self, execution: Execution) -> Result:
        session, block = execution.session, execution.block
        if self.waits and block.is_explicit:
            raise ActiveTransaction(
                f"{self.verb.name} JOB ... AND WAIT cannot run inside a transaction block"
            )
        block.txn(f"{self.verb.name} JOB")
        ids = ids_of(self.ids, execution)
        if block.is_explicit:
            self._ask(execution, block.use.txn, ids)
        else:
            session.locks.transact(lambda txn: self._ask(execution, txn, ids))
        if self.waits:
            with job_waits.outcome_of(*ids):
                await_jobs(self.bulk, execution, ids, self.verb.is_done)
        return Result(f"{self.verb.name} JOBS {len(ids)}")

    def _ask(self, execution: Execution, txn: Transaction, ids: Sequence[int]) -> None:
        jobs, rights = self.bulk.jobs, execution.session.rights(execution.block)
        for id in ids:
            job = jobs.get(txn, id)
            if job is None:
                raise UnknownJob(f"job {id} does not exist")
            require_job_owner(rights, job)
            self.verb.ask(jobs, txn, id)


def require_job_owner(rights: Rights, job: Job) -> None:
    if not rights.has_rights_of(job.owner):
        raise InsufficientPrivilege(
            f"must be owner of job {job.id}", hint=f'It belongs to "{job.owner}"; or ask a superuser.'
        )


@dataclass(frozen=True, slots=True)
class ShowWhenComplete:
    bulk: BulkServices
    ids: Select
    listed: Select
    """SHOW JOBS as a query: only its columns are used."""
    is_short: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self.listed.columns

    @property
    def parameters(self) -> tuple[Type, ...]:
        return self.ids.parameters

    def run(self, execution: Execution) -> Result:
        ids = ids_of(self.ids, execution)
        snapshot = await_jobs(self.bulk, execution, ids, TERMINAL.__contains__)
        return Result("SHOW", self._rows(execution, snapshot, frozenset(ids)), counts=True)

    def _rows(
        self, execution: Execution, snapshot: Snapshot, ids: frozenset[int]
    ) -> Iterator[Sequence[Datum]]:
        table = execution.session.system_tables.columns("tenure_internal.jobs")
        places = [table.index(each.name) for each in self.columns]
        for row in jobs_at(self.bulk, execution, snapshot):
            if row[0] in ids:
                yield tuple(row[place] for place in places)


def ids_of(select: Select, execution: Execution) -> list[int]:
    return [id for (id,) in select.rows(execution) if isinstance(id, int)]


def await_jobs(
    bulk: BulkServices,
    execution: Execution,
    ids: Sequence[int],
    is_done: Callable[[JobState], bool],
    *,
    on_look: Callable[[Snapshot], None] = lambda snapshot: None,
) -> Snapshot:
    """Returns when all of these jobs are as wanted, with the store as of then; one that is gone is done."""
    return job_waits.await_jobs(
        bulk.store,
        bulk.jobs,
        ids,
        is_done,
        check=execution.check,
        look_seconds=LOOK_SECONDS,
        on_look=on_look,
    )


# Reading them


def plan_control(bulk: BulkServices, planner: Planner, reader: TokenReader) -> Statement:
    verb = VERBS[planner.text.split(None, 1)[0].upper()]
    rest = reader.rest()
    found = _AND_WAIT.search(rest)
    ids = _ids(planner, rest[: found.start()] if found else rest)
    return ControlJobs(bulk, verb, ids, found is not None)


_AND_WAIT = re.compile(r"\s+and\s+wait\s*$", re.IGNORECASE)
_QUERY = re.compile(r"\s*(\(|select\b|values\b|with\b|table\b)", re.IGNORECASE)


def _ids(planner: Planner, text: str) -> Select:
    """A query for ids, or a list of them."""
    if not text.strip():
        raise SyntaxFault("syntax error at end of input", position=len(planner.text) + 1)
    parsed = parse.one(_query_of(text))
    if parsed is None or parse.kind(parsed.tree) != "SelectStmt":
        raise SyntaxFault("jobs are named by their ids, or by a query for them")
    select = plan_query(planner, parsed.tree)
    if len(select.columns) != 1 or select.columns[0].type.family not in INTEGERS:
        raise DatatypeMismatch("a query for jobs must give one column of ids, of type bigint")
    return select


def _query_of(text: str) -> str:
    return text if _QUERY.match(text) else f"SELECT unnest(ARRAY[{text}]::int8[])"


def plan_show(bulk: BulkServices, planner: Planner, reader: TokenReader) -> Statement:
    if reader.take("when", "complete"):
        return ShowWhenComplete(bulk, _ids(planner, reader.rest()), query(planner, LISTED))
    if reader.is_over:
        return query(planner, f"{LISTED} ORDER BY created DESC, job_id DESC")
    text = reader.rest()
    _ids(planner, text)
    where = f"WHERE job_id IN ({_query_of(text)})"
    return query(planner, f"{LISTED} {where} ORDER BY created DESC, job_id DESC")


def statements(bulk: BulkServices) -> dict[tuple[str, ...], WordsPlanner]:
    words: dict[tuple[str, ...], WordsPlanner] = {}
    for noun in ("job", "jobs"):
        words["show", noun] = partial(plan_show, bulk)
        for verb in VERBS:
            words[verb.lower(), noun] = partial(plan_control, bulk)
    return words
