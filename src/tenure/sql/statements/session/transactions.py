"""BEGIN, COMMIT, ROLLBACK, savepoints and SET TRANSACTION.

A block is serializable or READ COMMITTED: see `sql.session.transaction_modes`. A transaction that is to read
the past is told so before its first query:

    BEGIN AS OF SYSTEM TIME '-10s'        SET TRANSACTION AS OF SYSTEM TIME '-10s'

SET TRANSACTION SNAPSHOT is the same: what pg_export_snapshot() gives another transaction is its time.

Walk: `statements.statement_table` -> `plan` -> `control` -> `SessionTransactions.begin`, or its commit and
rollback.
"""

from dataclasses import dataclass

from tenure.base.errors import InFailedTransaction, InvalidParameter, NoTransaction, NotSupported
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.session_transactions import SessionTransactions
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer, NotShort, Pending
from tenure.sql.session.past_moments import read_past
from tenure.sql.session.session_state import SessionState
from tenure.sql.session.transaction_modes import ISOLATION, READ_ONLY, set_modes
from tenure.sql.session.variables import MODES
from tenure.sql.text import parse
from tenure.sql.text.as_of import is_logical_timestamp
from tenure.sql.text.parse import Tree
from tenure.sql.text.tenure_statements import TokenReader


@dataclass(frozen=True, slots=True)
class TransactionOptions:
    modes: tuple[tuple[str, str], ...] = ()
    """Names and values of `sql.session.variables.MODES`."""
    as_of: str = ""
    """The expression after AS OF SYSTEM TIME."""


NO_OPTIONS = TransactionOptions()


@dataclass(frozen=True, slots=True)
class TransactionStatement(Control):
    transactions: SessionTransactions
    verb: str
    name: str = ""
    options: TransactionOptions = NO_OPTIONS
    is_chained: bool = False

    def control(self, execution: Execution) -> "Answer | Pending":
        session = execution.session
        match self.verb:
            case "BEGIN" | "START TRANSACTION":
                return self._begin(session)
            case "COMMIT" | "ROLLBACK" if self.is_chained:
                return self._chain(session)
            case "COMMIT":
                return self.transactions.commit(inline=execution.inline)
            case "ROLLBACK":
                return self.transactions.rollback()
            case _:
                return self._savepoint(session)

    def _chain(self, session: SessionState) -> "Answer | Pending":
        """AND CHAIN: the next transaction begins at once, and is as the one before."""
        block = session.block
        if block is None or not block.is_explicit:
            raise NoTransaction(f"{self.verb} AND CHAIN can only be used in transaction blocks")
        if session.is_inline:
            raise NotShort
        modes = {name: session.variables[name] for name in MODES}
        if block.past is not None:
            del modes[READ_ONLY]  # it came with the time that was read
        transactions = self.transactions
        answer = transactions.commit(inline=False) if self.verb == "COMMIT" else transactions.rollback()
        transactions.begin()
        set_modes(session, modes)
        return answer

    def _begin(self, session: SessionState) -> Answer:
        session.require_usable_block()
        _require_thread(session, self.options)
        self.transactions.begin()
        if self.options is not NO_OPTIONS:
            _apply(session, self.options)
        return Answer((), self.verb)

    def _savepoint(self, session: SessionState) -> Answer:
        block = session.block
        if block is None or not block.is_explicit:
            what = "RELEASE SAVEPOINT" if self.verb == "RELEASE" else self.verb
            raise NoTransaction(f"{what} can only be used in transaction blocks")
        if block.is_failed and self.verb != "ROLLBACK TO SAVEPOINT":
            raise InFailedTransaction
        if self.verb == "SAVEPOINT":
            self.transactions.save(block, self.name)
        elif self.verb == "RELEASE":
            block.release(self.name)
        else:
            self.transactions.back_to(block, self.name)
            return Answer((), "ROLLBACK")
        return Answer((), self.verb)


@dataclass(frozen=True, slots=True)
class SetTransaction(Control):
    """SET TRANSACTION: the block under way, before its first query."""

    options: TransactionOptions

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        block = session.block
        if block is None or not block.is_explicit:
            session.notice("SET TRANSACTION can only be used in transaction blocks", "WARNING", "25P01")
            return Answer((), "SET")
        if block.is_failed:
            raise InFailedTransaction
        _require_thread(session, self.options)
        _apply(session, self.options)
        return Answer((), "SET")


def _require_thread(session: SessionState, options: TransactionOptions) -> None:
    """To read at a moment, the store's clock may have to be pushed there, which is a commit."""
    if options.as_of and session.is_inline:
        raise NotShort


def _apply(session: SessionState, options: TransactionOptions) -> None:
    set_modes(session, dict(options.modes))
    if options.as_of:
        assert session.block is not None
        read_past(session, session.block, options.as_of)
        session.variables.set_all_local({READ_ONLY: "on"})


_VERBS = {
    "TRANS_STMT_BEGIN": "BEGIN",
    "TRANS_STMT_START": "START TRANSACTION",
    "TRANS_STMT_COMMIT": "COMMIT",
    "TRANS_STMT_ROLLBACK": "ROLLBACK",
    "TRANS_STMT_SAVEPOINT": "SAVEPOINT",
    "TRANS_STMT_RELEASE": "RELEASE",
    "TRANS_STMT_ROLLBACK_TO": "ROLLBACK TO SAVEPOINT",
}


def plan(transactions: SessionTransactions, planner: Planner, tree: Tree) -> TransactionStatement:
    verb = _VERBS.get(parse.option(tree, "kind"))
    if verb is None:
        raise NotSupported(
            "two-phase commit is not supported",
            hint="PREPARE TRANSACTION has no equal here; COMMIT is durable on all nodes.",
        )
    options = options_of(tree.options, planner.as_of)
    return TransactionStatement(transactions, verb, tree.savepoint_name, options, tree.chain)


def plan_set_transaction(planner: Planner, tree: Tree) -> SetTransaction:
    return SetTransaction(options_of(tree.args, planner.as_of))


def plan_set_as_of(planner: Planner, reader: TokenReader) -> SetTransaction | None:
    """SET TRANSACTION AS OF SYSTEM TIME, which says nothing else; anything else is PostgreSQL's."""
    return (
        SetTransaction(TransactionOptions(as_of=planner.as_of)) if reader.is_over and planner.as_of else None
    )


def plan_import(snapshot: str) -> SetTransaction:
    """Of a snapshot that pg_export_snapshot() has given."""
    if not is_logical_timestamp(snapshot):
        raise InvalidParameter(f'invalid snapshot identifier: "{snapshot}"')
    return SetTransaction(TransactionOptions(as_of=snapshot))


def options_of(nodes: Tree, as_of: str = "") -> TransactionOptions:
    """Reads ISOLATION LEVEL, READ ONLY and DEFERRABLE as PostgreSQL's grammar gives them."""
    modes = []
    for each in parse.items(nodes):
        value = parse.child(each, "arg")
        if each.defname == ISOLATION:
            modes.append((ISOLATION, _text(value)))
        elif each.defname in MODES:
            modes.append((each.defname, "on" if _number(value) else "off"))
    return TransactionOptions(tuple(modes), as_of) if modes or as_of else NO_OPTIONS


def _text(value: Tree) -> str:
    text: str = value.sval.sval if parse.kind(value) == "A_Const" else value.sval
    return text


def _number(value: Tree) -> int:
    number: int = value.ival.ival if parse.kind(value) == "A_Const" else value.ival
    return number
