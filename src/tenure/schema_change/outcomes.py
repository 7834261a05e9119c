"""Waiting for what comes of a change: its job's end, and every node's knowledge of it.

Walk: `schema_change.changer` calls `await_job` after a commit that leaves the rest to a job, `await_known`
after one that does not, and `await_undone` after a failure.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from tenure.base.errors import OutcomeUnknown, RetryError, TenureError
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.cluster.jobs.job_states import TERMINAL
from tenure.cluster.jobs.job_table import JobControl, Jobs
from tenure.cluster.jobs.job_waits import await_jobs, failure_of
from tenure.kv.store import Store
from tenure.schema_change.declared_changes import NOBODY, Requester, is_public

WHOLE = 0
"""No descriptor has this id, so only leases on the whole catalog cover it: the newest of each node."""

JOB_POLL_SECONDS = 30.0
"""How long a statement waits for its job at most before it looks without a signal."""

CANCEL_SECONDS = 0.25
"""The time between two checks whether it was canceled, if it can be."""


UNDONE_SECONDS = 10.0
"""How long a failed transaction waits at most until its job has reversed its change."""


class ChangeOutcomes:
    def __init__(
        self, store: Store, catalog: Catalog, leases: LeaseScheme, publisher: Publisher, jobs: Jobs
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._leases = leases
        self._publisher = publisher
        self._jobs = jobs

    def await_undone(
        self, use: CatalogUse, job: int, declared: Sequence[AnyDescriptor], requester: Requester
    ) -> None:
        """An error is reported when nothing of the change is left that others would have to obey, or after a
        while.
        """
        use.close()  # the job that reverses it waits for what this one uses
        check = self._while_in_time(requester)
        with suppress(TenureError):
            self.await_end(job, requester._replace(check=check))
            self.make_known(declared, check)

    def _while_in_time(self, requester: Requester) -> Callable[[], None]:
        env = self._store.env
        until = env.monotonic() + UNDONE_SECONDS

        def check() -> None:
            requester.check()
            if env.monotonic() > until:
                raise RetryError("it takes long")

        return check

    def await_job(self, id: int, declared: Sequence[AnyDescriptor], requester: Requester) -> None:
        """Returns when a job has succeeded; raises its error otherwise.

        A statement that stops waiting is told that the job goes on.
        """
        try:
            control = self.await_end(id, requester)
        except OutcomeUnknown:
            raise
        except TenureError as error:
            error.detail = error.detail or f"The change is committed; job {id} goes on with it."
            raise
        progress = self._jobs.progress(self._store.snapshot(), id)
        if control is not None and not is_public(control, progress):
            with suppress(TenureError):
                self.make_known(declared, self._while_in_time(requester))
            raise failure_of(id, control)
        self.make_known(declared)

    def make_known(self, declared: Sequence[AnyDescriptor], check: Callable[[], None] = lambda: None) -> None:
        """Returns when all nodes use the versions that a job has published of these."""
        self.catch_up(declared)
        self.await_known(self._modified_at(declared), check)

    def catch_up(self, declared: Sequence[AnyDescriptor]) -> None:
        """Makes this node's next statement see the change, though another node ran the job."""
        newest_at = self._modified_at(declared)
        if newest_at > self._leases.newest_at():
            self._leases.renew()

    def _modified_at(self, declared: Sequence[AnyDescriptor]) -> Timestamp:
        snapshot = self._store.snapshot()
        stored = (self._catalog.get(snapshot, each.id) for each in declared)
        return max((each.modified_at for each in stored if each is not None), default=ZERO_AT)

    def await_end(self, id: int, requester: Requester) -> JobControl | None:
        """The record of a job that has ended; None if it was deleted."""
        seconds = JOB_POLL_SECONDS if requester.check is NOBODY.check else CANCEL_SECONDS
        snapshot = await_jobs(
            self._store, self._jobs, [id], TERMINAL.__contains__, check=requester.check, look_seconds=seconds
        )
        return self._jobs.control(snapshot, id)

    def await_known(self, commit_at: Timestamp, check: Callable[[], None] = lambda: None) -> None:
        """Returns when every other node has a lease from after that; it may still pin older versions."""
        self._publisher.await_gone([AwaitedDescriptor(WHOLE, commit_at)], LeaseWaiter(commit_at, check=check))
