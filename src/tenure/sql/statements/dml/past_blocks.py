"""Blocks that read the past beside a statement that belongs to the present.

    plan    the query is bound to the catalog of then, so that its columns are known
    run     the moment is worked out anew ('-10s' moves), and the query is bound and read as of it

Such a block has a snapshot and no lease. What it reads is fixed, so the transaction that writes its rows has
nothing of it to prove.

Walk: `statements.dml.queries` plans with `planning_block`; `statements.dml.insert_as_of` and
`statements.ddl.tables.create_table_as` read through `reading_block`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.base.errors import NotSupported
from tenure.sql.execution.execution import Execution
from tenure.sql.plans.plan import Lock, Query
from tenure.sql.plans.plan_facts import everything
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.past_moments import read_past
from tenure.sql.session.session_state import SessionState


@contextmanager
def planning_block(session: SessionState, operand: str) -> Iterator[Block]:
    """If the moment is a parameter, which has no value yet, the current catalog is used for planning.

    Not on the loop: to read at a moment, the store's clock may have to be pushed there, which is a commit.
    """
    if session.is_inline:
        raise NotShort
    block = session.new_block()
    try:
        if not operand.startswith("$"):
            read_past(session, block, operand)
        yield block
    finally:
        block.close()


@contextmanager
def reading_block(execution: Execution, operand: str) -> Iterator[Block]:
    session = execution.session
    block = session.new_block()
    block.now_micros = execution.block.now_micros
    try:
        read_past(session, block, operand, execution.values)
        yield block
    finally:
        block.close()


def refuse_locks(query: Query) -> None:
    if any(isinstance(each, Lock) for each in everything(query.plan, query)):
        raise NotSupported("rows as of an earlier time cannot be locked", hint="Leave FOR UPDATE out.")
