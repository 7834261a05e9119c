"""From a statement's text to something that can be run.

    text ─► own words? ─► `sql.text.tenure_statements`          SHOW TABLES, SET CLUSTER SETTING, ...
       └──► PostgreSQL's grammar ─► by the kind of its parse tree ─► the module in `sql.statements`

`AS OF SYSTEM TIME` is cut out of the text before PostgreSQL's grammar sees it; it counts for the whole
statement.

Walk: `sql.clients.session` calls `split`, `sql.execution.preparing` calls `plan`; that asks the entry of the
`StatementTable` which it was given.
"""

from tenure.base.errors import SyntaxFault, TooComplex, UserError
from tenure.expr.types.datatype import Type
from tenure.sql.execution.plan_cache import CachedPlan
from tenure.sql.execution.planner import Planner, StatementTable
from tenure.sql.execution.statement import Control, Statement
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.text import as_of, parse, tenure_statements
from tenure.sql.text.parse import Tree


def split(text: str, statements: StatementTable) -> list[str]:
    """The statements of a query string, by the semicolons between them; empty ones are left out.

    A syntax error in one of several is raised here: none of them is run then.
    """
    found = parse.tokens(text)
    data = text.encode()
    spans: list[tuple[int, int]] = []
    start = None
    for token in found:
        if token.kind == "ASCII_59":
            if start is not None:
                spans.append((start, token.start))
            start = None
        elif start is None:
            start = token.start
    if start is not None:
        spans.append((start, len(data)))
    if len(spans) > 1:
        for begin, end in spans:
            _check_syntax(data[begin:end].decode(), statements, chars_before=len(data[:begin].decode()))
    return [data[begin:end].decode() for begin, end in spans]


def is_statement(text: str, statements: StatementTable) -> bool:
    """Whether there is anything in it. Raises SyntaxFault (42601)."""
    return (
        tenure_statements.is_tenure_statement(text, statements.by_words)
        or parse.one(as_of.cut(text)[0]) is not None
    )


def _check_syntax(text: str, statements: StatementTable, *, chars_before: int) -> None:
    try:
        is_statement(text, statements)
    except SyntaxFault as error:
        if error.position:
            error.position += chars_before
        raise


def plan(
    session: SessionState,
    block: Block,
    text: str,
    types: tuple[Type | None, ...],
    statements: StatementTable,
) -> CachedPlan | None:
    """None for an empty statement."""
    try:
        return _plan(session, block, text, types, statements)
    except RecursionError as error:
        raise TooComplex("stack depth limit exceeded", hint="Simplify the statement.") from error


def _plan(
    session: SessionState,
    block: Block,
    text: str,
    types: tuple[Type | None, ...],
    statements: StatementTable,
) -> CachedPlan | None:
    rest, moment = as_of.cut(text)
    for name, cut in parse.names_too_long(rest):
        session.notice(f'identifier "{name}" will be truncated to "{cut}"', "NOTICE", "42622")
    planner = Planner(session, block, rest, types, statements=statements, as_of=moment)
    own = tenure_statements.find(rest, statements.by_words)
    statement = None if own is None else own[0](planner, own[1])
    if statement is None:
        parsed = parse.one(rest)
        if parsed is None:
            return None
        statement = _planned(planner, parsed.tree, rest)
    planner.check_as_of()
    is_kept = not isinstance(statement, Control) and getattr(statement, "is_kept", False) and not moment
    names = planner.names
    # Only for a plan that has read the catalog: SET TRANSACTION must not start to read.
    is_of_draft = is_kept and block.past is None and bool(block.draft)
    has_lease = is_kept and block.past is None and not is_of_draft and not block.use.is_mixed
    return CachedPlan(
        statement,
        path=session.path,
        uses=names.used if is_kept else {},
        names=names.resolved if is_kept else {},
        needs=names.needs,
        lease=block.use.lease if has_lease else None,
        is_kept=is_kept,
        is_of_draft=is_of_draft,
        temporary=block.use.temporary if is_kept and block.past is None else None,
    )


def _planned(planner: Planner, tree: Tree, text: str) -> Statement | Control:
    """Places in the tree count bytes; a client counts characters."""
    try:
        return planner.plan(tree)
    except UserError as error:
        if error.position and not text.isascii():
            error.position = len(text.encode()[: error.position - 1].decode("utf-8", "ignore")) + 1
        raise


_ENDING = ("COMMIT", "ROLLBACK", "END_P", "ABORT_P")


def ends_transaction(text: str) -> bool:
    """Whether it is one of those that a failed block accepts."""
    found = parse.tokens(text)
    return bool(found) and found[0].kind in _ENDING
