"""The rights of the role that created a job: the job may do what that role may do now.

A run asks at its start, so also when the job is resumed or another node takes it over. A right that was
revoked meanwhile, or a role that was dropped, fails the job; what it did is taken back, for which nobody is
asked. The rights are those of the store as of then, since a worker process has no lease.

Invariant (creators-rights): no run of a bulk job begins to work that its creator may not do any more.

Walk: `exporting.kind`, `importing.job` and `resetting.job` call `rights_of_creator` before they begin.
"""

from tenure.base.errors import InsufficientPrivilege
from tenure.bulk.lakes import Lake
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.descriptors.definitions import Table, View
from tenure.catalog.leases.access_sources import StoredAccess
from tenure.cluster.jobs.runs import Run


def rights_of_creator(lake: Lake, run: Run) -> Rights:
    rights = Rights(StoredAccess(lake.catalog, lake.store.snapshot()), run.job.owner)
    if not rights.exists:
        raise InsufficientPrivilege(f"the role that created job {run.job.id} does not exist")
    return rights


def relation(lake: Lake, id: int) -> Table | View | None:
    """A table or view as it is now; None if it is gone."""
    found = lake.catalog.get(lake.store.snapshot(), id)
    return found if isinstance(found, Table | View) else None
