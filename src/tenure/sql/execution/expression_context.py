"""The context of a statement's expressions: time, random values, sequences, settings, objects, locks.

Walk: `sql.execution.execution` asks for the `context_of` a statement; `expr.functions` read it.
"""

from collections.abc import Sequence

from tenure.base.errors import UndefinedVariable
from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Datum
from tenure.sql.execution.session_facts import FactAnswers, SessionFacts
from tenure.sql.names import regs
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.session.transaction_modes import set_modes
from tenure.sql.session.variables import MODES, definition


def context_of(session: SessionState, block: Block, values: Sequence[Datum]) -> Context:
    services = session.services
    return Context(
        now_micros=block.now_micros,
        statement_micros=session.activity.since_micros,
        uuid=session.generated.uuid,
        rowid=services.rowids,
        rowids=services.rowids.take,
        clock_micros=services.env.wall_micros,
        context_values=values,
        zone=session.variables.zone,
        sequences=session.generated.sequences_in(block),
        session=SessionFacts(session, block),
        setting=lambda name: _setting(session, name),
        set_setting=lambda name, value, is_local: _set_setting(session, name, value, is_local),
        sleep=session.interrupts.sleep,
        find_object=lambda kind, sought: regs.find(session, block, kind, sought),
        ask=FactAnswers(session, block),
        numbers=session.generated.numbers,
    )


def _setting(session: SessionState, name: str) -> str | None:
    try:
        return session.variables.show(name)[1]
    except UndefinedVariable:
        return None


def _set_setting(session: SessionState, name: str, value: str | None, is_local: bool) -> str:
    mode = definition(name).name
    if mode in MODES and value is not None:
        set_modes(session, {mode: value})
    elif is_local and session.block is not None:
        session.variables.set_local(name, value)
    else:
        session.variables.set(name, value)
    return session.variables.show(name)[1]
