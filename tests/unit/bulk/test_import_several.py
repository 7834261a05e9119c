"""Several tables in one import: all of them, or none."""

from tenure.bulk.importing.job import start
from tenure.bulk.importing.records import CSV, ImportPayload, TableInput
from tests.unit.bulk.imports import Importing


def _both(importing: Importing, parents: str, children: str) -> str:
    """Imports into two tables by one job; returns how that ended."""
    lake = importing.node.lake
    assert lake is not None
    inputs = []
    for name, text in (("child", children), ("parent", parents)):
        ((id,),) = importing.rows(f"SELECT '{importing.name}.{name}'::regclass::oid::text")
        location = importing.file(f"{name}.csv", text)
        inputs.append(TableInput(int(id or 0), (1, 2), (location,), CSV))
    payload = ImportPayload(tuple(inputs), user="root")
    job = lake.store.transact(lambda txn: start(txn, lake, payload, rows=0, description="both"))
    ((state,),) = importing.rows(
        f"SELECT status FROM tenure_internal.jobs WHERE job_id IN (SELECT {_completed(importing, job.id)})"
    )
    importing.node.leases.renew()
    return str(state)


def _completed(importing: Importing, job: int) -> int:
    importing.done(f"SHOW JOB WHEN COMPLETE {job}")
    return job


def _tables(importing: Importing) -> None:
    importing.done("CREATE TABLE parent (id int PRIMARY KEY, a text)")
    importing.done("CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)")


def test_rows_of_one_table_refer_to_those_of_another(importing: Importing) -> None:
    _tables(importing)
    assert _both(importing, "1,x\n2,y\n", "1,2\n2,1\n3,\n") == "succeeded"
    assert len(importing.rows("SELECT * FROM child JOIN parent ON parent.id = child.parent")) == 2


def test_one_that_fails_takes_the_other_back(importing: Importing) -> None:
    _tables(importing)
    assert _both(importing, "1,x\n2,y\n", "1,2\n2,3\n") == "failed"
    assert importing.rows("SELECT * FROM parent") == []
    assert importing.rows("SELECT * FROM child") == []
    importing.done("INSERT INTO parent VALUES (1, 'x')")
