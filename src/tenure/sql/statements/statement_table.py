"""All statements: which module plans which, by the kind of its parse tree or by its first words.

Statements about the session itself get what they work on (its portals, its transactions) when they are
planned; so each session has a table of its own, which is that of all sessions and a few entries more.

Walk: `sql.clients.session` asks for `session_statements`, by which a `Planner` looks statements up.
"""

from functools import partial

from tenure.sql.execution.planner import Planner, StatementTable, TreePlanner
from tenure.sql.execution.portal_runs import PortalRuns
from tenure.sql.execution.portals import Portals
from tenure.sql.execution.preparing import Preparing
from tenure.sql.execution.session_transactions import SessionTransactions
from tenure.sql.execution.statement import Control, Statement
from tenure.sql.statements.ddl import ddl_statements
from tenure.sql.statements.dml import copy, insert_as_of, queries, writes
from tenure.sql.statements.jobs.exporting import EXPORTS
from tenure.sql.statements.jobs.import_dump import DUMPS
from tenure.sql.statements.jobs.importing import IMPORTS
from tenure.sql.statements.jobs.job_statements import JOBS
from tenure.sql.statements.session import cursors, prepared, transactions, utility, variable_statements
from tenure.sql.statements.show import explain
from tenure.sql.statements.show.cluster_settings import CLUSTER_SETTINGS
from tenure.sql.statements.show.shows import SHOWS
from tenure.sql.text.parse import Tree


def session_statements(
    portals: Portals, preparing: Preparing, runs: PortalRuns, transactions_: SessionTransactions
) -> StatementTable:
    """The statements of one session."""
    of_session: dict[str, TreePlanner] = {
        "TransactionStmt": partial(transactions.plan, transactions_),
        "CopyStmt": partial(copy.plan, transactions_.finish_copy),
        "PrepareStmt": partial(prepared.plan_prepare, portals, preparing),
        "ExecuteStmt": partial(prepared.plan_execute, portals, preparing),
        "DeallocateStmt": partial(prepared.plan_deallocate, portals),
        "DiscardStmt": partial(prepared.plan_discard, portals),
        "DeclareCursorStmt": partial(cursors.plan_declare, portals, preparing),
        "FetchStmt": partial(cursors.plan_fetch, portals, runs),
        "ClosePortalStmt": partial(cursors.plan_close, portals),
    }
    return StatementTable({**STATEMENTS.by_kind, **of_session}, STATEMENTS.by_words)


def _plan_select(planner: Planner, tree: Tree) -> Statement | Control:
    """SELECT ... INTO makes a table."""
    if ddl_statements.is_select_into(tree):
        return ddl_statements.plan_select_into(planner, tree)
    return queries.plan(planner, tree)


STATEMENTS = StatementTable(
    by_kind={
        **ddl_statements.PLANNERS,
        "SelectStmt": _plan_select,
        "InsertStmt": insert_as_of.plan,
        "UpdateStmt": writes.plan_update,
        "DeleteStmt": writes.plan_delete,
        "ExplainStmt": explain.plan,
        "VariableSetStmt": variable_statements.plan_set,
        "VariableShowStmt": variable_statements.plan_show,
        "VacuumStmt": utility.plan_vacuum,
        "ConstraintsSetStmt": utility.plan_set_constraints,
        "CheckPointStmt": utility.plan_checkpoint,
        "UnlistenStmt": utility.plan_unlisten,
    },
    by_words={
        ("create", "database", "if", "not"): ddl_statements.create_database_if_not_exists,
        ("create", "schema"): ddl_statements.create_schema_in_database,
        ("set", "transaction"): transactions.plan_set_as_of,
        ("upsert", "into"): insert_as_of.plan_upsert,
        **SHOWS,
        **CLUSTER_SETTINGS,
        **JOBS,
        **EXPORTS,
        **IMPORTS,
        **DUMPS,
    },
)
"""Those that need nothing of one session when they are planned."""
