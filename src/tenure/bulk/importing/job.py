"""The job of an import.

    take the tables offline ──► T                                or make new ones, of a dump
    read, check, sort          a task per split of the input      `importing.first_pass`
    merge                      a task per range of each index     `importing.second_pass`
    foreign keys               a task per range of keys
        rows that are bad here, if they are tolerated: refused, and again from "merge" on without them
    publish                    all indexes, and the tables public again, in one commit

A run that is interrupted leaves files that no manifest names; the next starts over, with the tables still
offline. The result is published with the job's progress, so no run does it twice. If it fails, or is
canceled, the tables come back as they were. The objects of a dump exist only in the job until then.

Invariant (I40): a failed import leaves no row behind, and one that is resumed brings each row once.

Walk: `sql.statements.jobs.importing` -> `start`; `composition.job_layer` hands `import_kind` to the job
runner, which runs or reverts it.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tenure.base.errors import RetryError, TenureError, WrongState
from tenure.base.settings import SPARK_MIN_ROWS
from tenure.bulk.creator_rights import relation, rights_of_creator
from tenure.bulk.importing.new_tables import NewTables
from tenure.bulk.importing.records import KIND, ImportPayload, ImportProgress, Summary
from tenure.bulk.ingest.existing_tables import ExistingTables
from tenure.bulk.lakes import Lake
from tenure.bulk.phases import Phases
from tenure.catalog.accounts.predefined_roles import READ_FILES, WRITE_FILES
from tenure.catalog.accounts.privileges import IMPORT, INSERT
from tenure.catalog.accounts.rights import Rights, require_files
from tenure.catalog.accounts.sealing import sealed, unsealed
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.definitions import Table, View, visible
from tenure.cluster.jobs.attempts import BLOCKED_ATTEMPTS_MAX
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.expr.tree.sequence_needs import default_needs
from tenure.kv.records import pack, unpack
from tenure.kv.transaction import Transaction
from tenure.pipeline.tasks import SPARK
from tenure.storage.locations import Locations
from tenure.table.lake.publishing import publish

if TYPE_CHECKING:
    from tenure.bulk.importing.first_pass import SurveyedInput
    from tenure.bulk.importing.inputs import InputFile
    from tenure.bulk.importing.rejects import RejectsFile
    from tenure.pipeline.merge import MergedIndex

ROW_BYTES = 64
"""The estimated length of a row of a text file, to guess the number of rows; of a compressed one a
quarter.
"""

PUBLISH_ATTEMPTS = 5
RUNS_MAX = 6
"""How often in a row an import may meet conflicts, each time for so many attempts to publish: its tables have
been offline for half a minute more by then. After that it fails, and they come back.
"""


def start(txn: Transaction, lake: Lake, payload: ImportPayload, *, rows: int, description: str) -> Job:
    """Makes the job of an import of about so many rows."""
    id = lake.jobs.fresh_id(txn)
    return lake.jobs.create(
        txn,
        kind=KIND,
        id=id,
        payload=pack(payload.with_locations(partial(sealed, txn, lake.store.keyspace, id))),
        owner=payload.user,
        description=description,
        needs=(SPARK,) if rows > lake.settings()[SPARK_MIN_ROWS] else (),
    )


def guessed_rows(sources: "Sequence[InputFile]") -> int:
    return sum(source.bytes * (4 if source.compression else 1) for source in sources) // ROW_BYTES


def summary_of(data: bytes) -> Summary:
    """The summary of a successful import, from its job's progress."""
    return unpack(data, ImportProgress).summary


def import_kind(lake: Lake, publisher: Publisher, locations: Locations) -> JobKind:
    def run(run: Run) -> None:
        if not run.progress.data:
            _check_creator(lake, run)
            _Import(lake, publisher, locations, run).run()

    def revert(run: Run) -> None:
        if run.progress.data:
            raise WrongState("the rows were public before the import could be taken back; it is complete")
        payload = unpack(run.job.payload, ImportPayload)
        _targets(lake, publisher, run, payload).give_up()
        lake.delete_scratch(run, below=run.fence.run + 1)
        if payload.rejects:
            _rejects_file(lake, locations, run).delete()

    return JobKind(run, revert, attempts_max=RUNS_MAX, blocked_attempts_max=BLOCKED_ATTEMPTS_MAX)


def _check_creator(lake: Lake, run: Run) -> None:
    payload = unpack(run.job.payload, ImportPayload)
    rights = rights_of_creator(lake, run)
    if payload.made:
        rights.require_superuser("permission denied to IMPORT a dump")
    require_files(rights, READ_FILES, "IMPORT from files")
    if payload.rejects:
        require_files(rights, WRITE_FILES, "write rejects to files")
    for each in payload.tables:
        if (table := relation(lake, each.table)) is not None:
            rights.require(table, IMPORT)
            rights.require_on_columns(table, INSERT, each.columns)
            _check_defaults(lake, rights, table, each.columns)


def _check_defaults(lake: Lake, rights: Rights, table: Table | View, columns: Sequence[int]) -> None:
    """The sequences that give the columns that are not in the files their values."""
    if not isinstance(table, Table):
        return
    left = [each for each in visible(table.columns) if each.id not in columns]
    for id, privilege in default_needs(left):
        sequence = lake.catalog.get(lake.store.snapshot(), id)
        if sequence is not None:
            rights.require(sequence, privilege)


def _targets(
    lake: Lake, publisher: Publisher, run: Run, payload: ImportPayload
) -> ExistingTables | NewTables:
    if payload.made:
        return NewTables(lake, publisher, run, payload)
    return ExistingTables(lake, publisher, run, [each.table for each in payload.tables])


def _rejects_file(lake: Lake, locations: Locations, run: Run) -> "RejectsFile":
    from tenure.bulk.importing.rejects import RejectsFile

    kept = unpack(run.job.payload, ImportPayload).rejects
    location = unsealed(lake.store.snapshot(), lake.store.keyspace, run.job.id, kept)
    return RejectsFile(locations, location, run.job.id)


class _Import:
    def __init__(self, lake: Lake, publisher: Publisher, locations: Locations, run: Run) -> None:
        self._lake = lake
        self._locations = locations
        self._run = run
        opened = partial(unsealed, lake.store.snapshot(), lake.store.keyspace, run.job.id)
        self._payload = unpack(run.job.payload, ImportPayload).with_locations(opened)
        self._targets = _targets(lake, publisher, run, self._payload)
        self._phases = Phases(lake, run)

    def run(self) -> None:
        # Arrow is imported when the first import needs it: a node that never does one is smaller.
        from tenure.bulk.importing.first_pass import FirstPass
        from tenure.bulk.importing.passes import Pass
        from tenure.bulk.importing.second_pass import SecondPass

        common = Pass(self._lake, self._locations, self._run, self._payload, self._targets, self._phases)
        self._lake.delete_scratch(self._run, below=self._run.fence.run)
        snapshot = self._targets.prepare()
        first = FirstPass(common)
        input = first.run(snapshot)
        rejects = input.rejects
        common.tolerate(rejects)
        second = SecondPass(common, input, rejects)
        merged = second.run(snapshot)
        file = _rejects_file(self._lake, self._locations, self._run)
        with file.written(rejects, lambda: self._lake.is_given_up(self._run)):
            self._publish(merged, _summary(input, merged, len(rejects)))
        # Early, to free space: `bulk.upkeep` deletes what is left.
        self._lake.files.delete(input.runs)
        first.delete_scratch()
        second.delete_scratch()

    def _publish(self, merged: "Sequence[MergedIndex]", summary: Summary) -> None:
        """Starts over if a database of the new tables was changed meanwhile, or its leases were."""
        for left in reversed(range(PUBLISH_ATTEMPTS)):
            try:
                return self._try_publishing(merged, summary)
            except RetryError:
                if not left:
                    raise

    def _try_publishing(self, merged: "Sequence[MergedIndex]", summary: Summary) -> None:
        settled = self._targets.settled()
        lake = self._lake

        def work(txn: Transaction) -> None:
            for each in merged:
                publish(txn, lake.store.keyspace, lake.manifests, each.base, each.edit, None)
            self._targets.bring_back(txn, settled)
            text = f"{self._phases.engine}: {summary.rows} rows"
            self._run.save(txn, fraction=1.0, status=text, data=pack(ImportProgress(summary)))

        self._run.transact(work)
        self._know_bases(merged)

    def _know_bases(self, merged: "Sequence[MergedIndex]") -> None:
        """At once: the first writer here need not be refused to learn that there is a base."""
        keyspace = self._lake.store.keyspace
        with suppress(TenureError):  # the import is published already
            for each in merged:
                self._lake.bases.newer(keyspace.head(each.base.table, each.base.index), None)


def _summary(input: "SurveyedInput", merged: "Sequence[MergedIndex]", rejected: int) -> Summary:
    primary = {(table.version.table.id, table.layout.primary.id) for table in input.tables}
    rows = entries = 0
    for each in merged:
        if (each.base.table, each.base.index) in primary:
            rows += each.added
        else:
            entries += each.added
    results = [result for of_table in input.found for result in of_table]
    size = sum(run.size for result in results for runs in result.indexes.values() for run in runs)
    return Summary(rows, entries, size, rejected)
