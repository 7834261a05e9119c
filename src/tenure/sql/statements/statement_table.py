"""All statements: which module plans which, by the kind of its parse tree or by its first words.

Statements get what they work on when the table is made:

    of jobs, and with files       BulkServices
    that define                   DefinitionServices
    of cluster settings           ClusterSettings
    COPY                          the codecs of the wire
    about the session itself      its portals and transactions

Walk: `sql.clients.session` asks for `session_statements`, by which a `Planner` looks statements up.
"""

from functools import partial

from tenure.cluster.settings import ClusterSettings
from tenure.sql.execution.planner import Planner, StatementTable, TreePlanner, WordsPlanner
from tenure.sql.execution.portal_runs import PortalRuns
from tenure.sql.execution.portals import Portals
from tenure.sql.execution.preparing import Preparing
from tenure.sql.execution.session_transactions import SessionTransactions
from tenure.sql.execution.statement import Control, Statement
from tenure.sql.session.services import BulkServices, Codecs
from tenure.sql.statements.ddl import ddl_statements
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.dml import copy, insert_as_of, queries, writes
from tenure.sql.statements.jobs import (
    changefeeds,
    exporting,
    gc_statements,
    import_dump,
    importing,
    job_statements,
    resetting,
)
from tenure.sql.statements.session import (
    constraint_modes,
    cursors,
    extensions,
    notifying,
    prepared,
    table_locks,
    transactions,
    utility,
    variable_statements,
)
from tenure.sql.statements.show import cluster_settings, explain, zone_shows
from tenure.sql.statements.show.grant_shows import GRANT_SHOWS
from tenure.sql.statements.show.shows import SHOWS
from tenure.sql.text.parse import Tree


def node_statements(
    bulk: BulkServices, defining: DefinitionServices, settings: ClusterSettings
) -> StatementTable:
    """The statements of all sessions of a node."""
    by_words: dict[tuple[str, ...], WordsPlanner] = {
        **STATEMENTS.by_words,
        **ddl_statements.planners_by_words(defining),
        **cluster_settings.statements(settings, defining.catalog),
        **zone_shows.statements(defining),
        **job_statements.statements(bulk),
        **gc_statements.statements(bulk),
        **exporting.statements(bulk),
        **changefeeds.statements(bulk),
        **importing.statements(bulk),
        **import_dump.statements(bulk, defining),
        **resetting.statements(bulk, defining),
    }
    by_kind: dict[str, TreePlanner] = {
        **STATEMENTS.by_kind,
        **ddl_statements.planners(defining),
        "SelectStmt": partial(_plan_select, defining),
    }
    return StatementTable(by_kind, by_words)


def _plan_select(defining: DefinitionServices, planner: Planner, tree: Tree) -> Statement | Control:
    """SELECT ... INTO makes a table."""
    if ddl_statements.is_select_into(tree):
        return ddl_statements.plan_select_into(defining, planner, tree)
    return queries.plan(planner, tree)


def session_statements(
    of_node: StatementTable,
    codecs: Codecs,
    portals: Portals,
    preparing: Preparing,
    runs: PortalRuns,
    transactions_: SessionTransactions,
) -> StatementTable:
    """The statements of one session."""
    of_session: dict[str, TreePlanner] = {
        "TransactionStmt": partial(transactions.plan, transactions_),
        "CopyStmt": partial(copy.plan, codecs, transactions_.finish_copy),
        "PrepareStmt": partial(prepared.plan_prepare, portals, preparing),
        "ExecuteStmt": partial(prepared.plan_execute, portals, preparing),
        "DeallocateStmt": partial(prepared.plan_deallocate, portals),
        "DiscardStmt": partial(prepared.plan_discard, portals),
        "DeclareCursorStmt": partial(cursors.plan_declare, portals, preparing),
        "FetchStmt": partial(cursors.plan_fetch, portals, runs),
        "ClosePortalStmt": partial(cursors.plan_close, portals),
    }
    return StatementTable({**of_node.by_kind, **of_session}, of_node.by_words)


STATEMENTS = StatementTable(
    by_kind={
        "InsertStmt": insert_as_of.plan,
        "UpdateStmt": writes.plan_update,
        "DeleteStmt": writes.plan_delete,
        "ExplainStmt": explain.plan,
        "VariableSetStmt": variable_statements.plan_set,
        "VariableShowStmt": variable_statements.plan_show,
        "LockStmt": table_locks.plan,
        "VacuumStmt": utility.plan_vacuum,
        "ConstraintsSetStmt": constraint_modes.plan_set_constraints,
        "CheckPointStmt": utility.plan_checkpoint,
        "CreateExtensionStmt": extensions.plan_create_extension,
        "DoStmt": extensions.plan_do,
        "ListenStmt": notifying.plan_listen,
        "UnlistenStmt": notifying.plan_unlisten,
        "NotifyStmt": notifying.plan_notify,
    },
    by_words={
        ("set", "transaction"): transactions.plan_set_as_of,
        ("upsert", "into"): insert_as_of.plan_upsert,
        **SHOWS,
        **GRANT_SHOWS,
    },
)
"""Those that need nothing of a node or of one session when they are planned."""
