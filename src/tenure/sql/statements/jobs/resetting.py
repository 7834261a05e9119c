"""ALTER TABLE ... RESET TO: the rows of a table become what they were at a time.

    ALTER TABLE [IF EXISTS] t RESET TO { SYSTEM TIME moment | SNAPSHOT name }

    few rows differ       one transaction: those that differ go, and come back as they were
    many                  a job: the table is closed for writing, and a merge brings the rows of then

It is written now, under the present schema: constraints of today hold for the result, or the statement fails
as an INSERT or DELETE of these rows would. Rows of other tables are not changed, even if their foreign keys
cascade. The history of before stays as it was.

It is not part of any transaction block. Only the table's owner and superusers may run it.

Walk: `statements.statement_table` -> `plan_reset` -> `ResetTable.control` -> `bulk.resetting.former_rows`,
`statements.dml.writing.writer_of`; or `bulk.resetting.job.start`.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

from tenure.base.errors import (
    NotSupported,
    RetryError,
    UndefinedTable,
    WrongState,
)
from tenure.base.interruptible import interruptible
from tenure.base.retries import Retries
from tenure.base.settings import VERSION
from tenure.base.timestamp import to_text
from tenure.bulk.resetting.former_rows import FormerRows
from tenure.bulk.resetting.job import start
from tenure.bulk.resetting.records import ResetPayload
from tenure.catalog.descriptors.definitions import EnumType, Table, is_dropped
from tenure.cluster.sessions.versions import PROGRAM
from tenure.retention.sweeping.versions import versions_of
from tenure.schema_change.declared_changes import Requester
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.preparing import ATTEMPTS, PAUSES
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.session.block import Block
from tenure.sql.session.past_moments import PastMoment, moment_of
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.dml.writing import writer_of
from tenure.sql.statements.jobs.exporting import rows_about
from tenure.sql.statements.jobs.waiting_statements import await_job, create_job
from tenure.sql.text.quoting import quoted
from tenure.sql.text.tenure_statements import RESET_TO, TokenReader
from tenure.table.rows import Layout

TAG = "ALTER TABLE"

TRANSACTION_ROWS_MAX = 10_000
"""If more rows may differ, a job merges them: a transaction of so many takes about a second."""


class LargeReset(NamedTuple):
    table: Table
    former_primary: int
    """The primary index that it had then."""


@dataclass(frozen=True, slots=True)
class ResetTable(Control):
    bulk: BulkServices
    node: DefinitionServices
    text: str
    path: tuple[str, ...]
    if_exists: bool
    operand: str
    """The moment, or "SNAPSHOT name"."""
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    is_short = False

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_no_block("ALTER TABLE ... RESET TO")
        moment = moment_of(session, self.operand)
        large = self._in_transaction(execution, moment)
        if large is not None:
            await_job(self.bulk, execution, self._start(execution, large, moment))
            self.bulk.renew_lease()
        return Answer((), TAG)

    def _in_transaction(self, execution: Execution, moment: PastMoment) -> "LargeReset | None":
        """Resets few rows; a table of which many differ is returned, with nothing done."""
        session = execution.session
        retries = Retries(ATTEMPTS, PAUSES, session.env, sleep=session.interrupts.pause)
        while True:
            block = session.new_block()
            block.fence, block.charge = session.locks.fence, session.memory.hold_writes
            block.pause = session.interrupts.pause
            try:
                large = self._apply(Execution(session, block, ()), moment)
                if large is None:
                    block.commit(Requester(session.user, self.text, session.interrupts.check_time))
                return large
            except RetryError as error:
                retries.failed(error)
            finally:
                block.close()
            retries.pause()

    def _apply(self, execution: Execution, moment: PastMoment) -> "LargeReset | None":
        """Writes what differs, in the block's transaction."""
        block, txn = execution.block, execution.block.txn(TAG)
        table = self._table(execution)
        if table is None:
            return None
        rows_max = txn.buffer.rows_max if self.bulk.lake is None else TRANSACTION_ROWS_MAX
        then = self._former_table(table, moment)
        differences = self._former_rows(block, then, table, moment).differences(txn, rows_max)
        if differences is None and self.bulk.lake is not None:
            return LargeReset(table, then.primary)
        if differences is None:
            txn.buffer.check_rows(rows_max + 1)
            return None
        writer = writer_of(execution, table, cascades=False)
        for each in interruptible(differences, execution.check):
            if each.row is not None:
                writer.delete(txn, each.row)
        fresh = [each.former for each in differences if each.former is not None]
        for _ in interruptible(writer.insert_all(txn, fresh), execution.check):
            pass
        writer.finish(txn, execution.check)
        return None

    def _start(self, execution: Execution, large: "LargeReset", moment: PastMoment) -> int:
        session, lake = execution.session, self.bulk.lake
        assert lake is not None, "without a lake every reset is one transaction"
        if lake.settings()[VERSION] < PROGRAM:
            raise WrongState(
                "many rows cannot be reset before the cluster is finalized",
                hint=f"Upgrade all nodes first, then SET CLUSTER SETTING version = {PROGRAM}.",
            )
        payload = ResetPayload(
            large.table.id,
            moment.at,
            user=session.user,
            database=session.database_name,
            now_micros=session.env.wall_micros(),
            zone=session.variables["TimeZone"],
        )
        return create_job(
            execution,
            lambda txn: start(
                *(txn, lake, payload),
                former_primary=large.former_primary,
                name=large.table.name,
                rows=rows_about(lake, large.table.id),
                following=moment.protection,
            ),
        )

    def _former_table(self, table: Table, moment: PastMoment) -> Table:
        then = self.node.catalog.get(self.node.store.snapshot(moment.at), table.id)
        if not isinstance(then, Table) or is_dropped(then):
            raise UndefinedTable(f'relation "{table.name}" did not exist at {to_text(moment.at)}')
        return then

    def _former_rows(self, block: Block, then: Table, table: Table, moment: PastMoment) -> FormerRows:
        node = self.node

        def enum(id: int) -> EnumType:
            """By the labels of today, unless the type is gone."""
            found = block.descriptor(id) or node.catalog.get(node.store.snapshot(moment.at), id)
            assert isinstance(found, EnumType), "a column has it"
            return found

        lake = self.bulk.lake
        return FormerRows(
            node.store,
            Layout(then, node.store.keyspace, enum),
            block.layout(table),
            self._versions(block, then, table, moment),
            moment.at,
            files=None if lake is None else lake.bases.checked,
            protected=moment.protected,
        )

    def _versions(self, block: Block, then: Table, table: Table, moment: PastMoment) -> list[Table]:
        """Those that the table has had from then on; the last is the one that the block uses."""
        node = self.node
        found = versions_of(node.store, node.catalog, table.id, since_at=moment.at, until_at=block.read_at)
        between = [each for each in found if isinstance(each, Table) and each.version < table.version]
        return [then, *(each for each in between if each.version > then.version), table]

    def _table(self, execution: Execution) -> Table | None:
        try:
            table = Definer(self.node, execution, self.text).table(self.path)
        except UndefinedTable:
            if not self.if_exists:
                raise
            name = ".".join(self.path)
            execution.session.notice(f'relation "{name}" does not exist, skipping')
            return None
        execution.session.rights().require_owner(table)
        return table


def plan_reset(
    bulk: BulkServices, node: DefinitionServices, planner: Planner, reader: TokenReader
) -> ResetTable:
    reader.expect("alter", "table")
    if_exists = reader.take("if", "exists")
    path = tuple(reader.names())
    reader.expect("reset", "to")
    if reader.take("snapshot"):
        operand = f"SNAPSHOT {quoted(reader.name())}"
    else:
        reader.expect("system", "time")
        operand = ("-" if reader.take("-") else "") + reader.string()
    reader.end()
    if operand.startswith("$"):
        raise NotSupported("ALTER TABLE takes no parameters")
    return ResetTable(bulk, node, planner.text, path, if_exists, operand)


def statements(bulk: BulkServices, node: DefinitionServices) -> dict[tuple[str, ...], WordsPlanner]:
    return {RESET_TO: partial(plan_reset, bulk, node)}
