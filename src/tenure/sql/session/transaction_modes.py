"""The modes of a transaction: its isolation, whether it only reads, and whether it may be deferred.

    default_transaction_x ──► transaction_x, when a transaction begins
                                    ▲
                                    └── BEGIN x, SET TRANSACTION x, SET transaction_x

A transaction begins with the session's defaults, also one of a single statement. From then on its modes are
its own: a change of the defaults does not touch them. ROLLBACK TO takes back what was set since a savepoint.
SHOW outside of a block shows what the next transaction begins with.

    SERIALIZABLE, REPEATABLE READ       served as serializable, which is at least as strict
    READ COMMITTED, READ UNCOMMITTED    each statement of a block reads at a time of its own

A transaction of one statement has one time in any case, and is serializable. DEFERRABLE has no effect, since
nothing that only reads waits. `Block` keeps READ ONLY: it refuses what would write (25006).

Walk: `sql.execution.session_transactions` -> `begin`, `restore`; BEGIN, SET TRANSACTION, SET
and set_config -> `set_modes`.
"""

from collections.abc import Mapping

from tenure.base.errors import ActiveTransaction
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.session.variables import MODES

ISOLATION, READ_ONLY, DEFERRABLE = MODES


def reads_only(session: SessionState) -> bool:
    """Whether a transaction that begins now may only read."""
    return session.variables.effects.is_read_only


def reads_committed(session: SessionState) -> bool:
    """Whether the statements of a block that begins now read at times of their own."""
    return session.variables.effects.is_read_committed


def begin(session: SessionState, block: Block) -> None:
    """A block begins: it keeps the current defaults."""
    variables = session.variables
    variables.set_all_local({name: variables[name] for name in MODES})
    restore(session, block)


def set_modes(session: SessionState, modes: Mapping[str, str]) -> None:
    """Sets modes of the current block; outside of a block they have no effect."""
    block = session.block
    checked = {name: session.variables.checked(name, value) for name, value in modes.items()}
    if block is None or not block.is_explicit:
        return
    for name, value in checked.items():
        _check(session, block, name, value)
    session.variables.set_all_local(checked)
    restore(session, block)


def restore(session: SessionState, block: Block) -> None:
    """Applies the variables to the block, after they were set or rolled back."""
    block.is_read_only = reads_only(session) or block.past is not None
    if not block.has_begun:
        block.is_read_committed = reads_committed(session) and not block.is_single


def _check(session: SessionState, block: Block, name: str, value: str) -> None:
    if name == DEFERRABLE:
        what = "SET TRANSACTION [NOT] DEFERRABLE"
        if block.savepoints:
            raise ActiveTransaction(f"{what} cannot be called within a subtransaction")
        if block.has_begun:
            raise ActiveTransaction(f"{what} must be called before any query")
    elif name == ISOLATION and value != session.variables[ISOLATION]:
        what = "SET TRANSACTION ISOLATION LEVEL"
        if block.has_begun:
            raise ActiveTransaction(f"{what} must be called before any query")
        if block.savepoints:
            raise ActiveTransaction(f"{what} must not be called in a subtransaction")
    elif name == READ_ONLY and value == "off" and block.is_read_only:
        if block.savepoints:
            raise ActiveTransaction("cannot set transaction read-write mode inside a read-only transaction")
        if block.has_begun:
            raise ActiveTransaction("transaction read-write mode must be set before any query")
