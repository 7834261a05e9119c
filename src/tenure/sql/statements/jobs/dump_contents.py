"""The objects of a dump as descriptors: its statements run in a draft that is not committed by itself.

    statements ──► a block's draft ──► descriptors, with new ids, for the job to publish with their rows

A primary key that the dump adds to a table after its rows is put into the table's own statement: so the table
never has another one. Everything else keeps the dump's order, which pg_dump chose by what depends on what.

All that the dump uses must be in it: what is there already would have to be changed, and changed back if the
import fails.

Walk: `sql.statements.jobs.import_dump` -> `make` -> `sql.execution.planner` for each statement, as for any
other.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.base.errors import (
    BadDump,
    DuplicateColumn,
    OutOfRange,
    RetryError,
    UndefinedColumn,
    UserError,
    place_in_file,
)
from tenure.base.retries import Pauses, Retries
from tenure.bulk.dumps.scan import CopiedRows, InsertedRows
from tenure.bulk.importing.records import COPY, INSERTS, DumpRange, SequenceValue
from tenure.catalog.descriptors.definitions import AnyDescriptor, Column, Database, Table, replace, visible
from tenure.catalog.descriptors.elements import finished
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, StatementTable
from tenure.sql.execution.statement import Control
from tenure.sql.names.sequence_names import path_of as path_in_text
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.jobs.dump_rules import RuledItem, Ruling, called, constant
from tenure.sql.text.parse import Tree, child, items, kind, names, option
from tenure.sql.text.quoting import quoted

ATTEMPTS = 10
PAUSES = Pauses(0.05, 0.25)


class RowsOf(NamedTuple):
    """Where the rows of a table are."""

    table: int
    columns: tuple[int, ...]
    format: str
    generated: tuple[int, ...]


@dataclass
class DumpContents:
    descriptors: tuple[AnyDescriptor, ...] = ()
    values: list[SequenceValue] = field(default_factory=list)
    rows: dict[RowsOf, list[DumpRange]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)


def make(
    session: SessionState,
    statements: StatementTable,
    defining: DefinitionServices,
    steps: Sequence[RuledItem],
    file: str,
) -> DumpContents:
    """Raises the error of a statement with its line. Nothing is changed."""
    told, variables = len(session.notices), session.variables.state
    retries = Retries(ATTEMPTS, PAUSES, session.env, sleep=session.interrupts.pause)
    while True:
        block = session.new_block(variables)
        try:
            return _Definitions(session, statements, defining, block, file).run(_with_keys(steps))
        except RetryError as error:
            retries.failed(error)
            del session.notices[told:]
        finally:
            block.close()
            session.variables.restore(variables)
        retries.pause()


def _with_keys(steps: Sequence[RuledItem]) -> list[RuledItem]:
    """Primary keys go to where their tables are made."""
    path: tuple[object, ...] = ()
    tables: dict[tuple[object, ...], Tree] = {}
    ordered: list[RuledItem] = []
    for step in steps:
        tree = step.tree
        if step.ruling is Ruling.PATH:
            path = tuple(search_path(tree))
        elif kind(tree) == "CreateStmt":
            tree = type(tree)()
            tree.CopyFrom(step.tree)
            tables[path, *path_of(tree.relation)] = tree
            step = step._replace(tree=tree)
        elif kind(tree) == "AlterTableStmt" and _adds_key(tree):
            table = tables.get((path, *path_of(tree.relation)))
            if table is not None:
                table.table_elts.add().constraint.CopyFrom(child(items(tree.cmds)[0], "def"))
                continue
        ordered.append(step)
    return ordered


def _adds_key(tree: Tree) -> bool:
    actions = items(tree.cmds)
    if len(actions) != 1 or option(actions[0], "subtype") != "AT_AddConstraint":
        return False
    return option(child(actions[0], "def"), "contype") == "CONSTR_PRIMARY"


def search_path(tree: Tree) -> list[str]:
    """Which one a statement sets."""
    if kind(tree) == "SelectStmt":
        _, arguments = called(tree)
        return [str(arguments[1])] if arguments[1] else []
    return [quoted(str(constant(each))) for each in items(tree.args)]


class _Definitions:
    """The statements of a dump, run one after the other."""

    def __init__(
        self,
        session: SessionState,
        statements: StatementTable,
        defining: DefinitionServices,
        block: Block,
        file: str,
    ) -> None:
        self._session = session
        self._statements = statements
        self._defining = defining
        self._block = block
        self._file = file
        self._contents = DumpContents()

    def run(self, steps: Sequence[RuledItem]) -> DumpContents:
        for step in steps:
            self._session.check()
            try:
                self._do(step)
            except BadDump:
                raise
            except UserError as error:
                at = place_in_file(self._file, step.item.line)
                error.detail = f"{error.detail} It is in {at}." if error.detail else at
                error.position = 0  # it belongs to the dump, not to the client's text
                raise
        draft = self._block.use.draft
        for id, each in draft.declared.items():
            if not draft.is_new(id) and not isinstance(each, Database):
                raise BadDump(f'the dump uses "{each.name}", which it does not make', self._file, 1, "0A000")
        self._contents.descriptors = tuple(
            replace(finished(each), version=0) for each in draft.new_descriptors().values()
        )
        return self._contents

    def _do(self, step: RuledItem) -> None:
        match step.ruling:
            case Ruling.DEFINE:
                self._define(step.tree, step.item.text)
            case Ruling.PATH:
                self._session.variables.set_local("search_path", ", ".join(search_path(step.tree)))
            case Ruling.VALUE:
                self._contents.values.append(self._value(step.tree))
            case Ruling.ROWS:
                self._rows(step)
            case Ruling.SKIP:
                self._contents.skipped[_words(step.item.text)] += 1
            case Ruling.NOTHING:
                pass

    def _define(self, tree: Tree, text: str) -> None:
        if kind(tree) == "CreateSchemaStmt" and tree.schemaname == "public":
            tree.if_not_exists = True  # every database has it
        planner = Planner(self._session, self._block, text, (), statements=self._statements)
        statement = planner.plan(tree)
        assert not isinstance(statement, Control), "it defines something"
        statement.run(self._execution())

    def _execution(self) -> Execution:
        return Execution(self._session, self._block, ())

    def _definer(self) -> Definer:
        return Definer(self._defining, self._execution())

    def _value(self, tree: Tree) -> SequenceValue:
        _, arguments = called(tree)
        sequence = self._definer().sequence(path_in_text(str(arguments[0])))
        value = arguments[1]
        assert isinstance(value, int), "as the rules have it"
        if not sequence.minimum <= value <= sequence.maximum:
            raise OutOfRange(
                f'setval: value {value} is out of bounds for sequence "{sequence.name}"'
                f" ({sequence.minimum}..{sequence.maximum})"
            )
        return SequenceValue(sequence.id, value, is_called=len(arguments) < 3 or bool(arguments[2]))

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def _rows(self, step: RuledItem) -> None:
        item = step.item
        assert isinstance(item, CopiedRows | InsertedRows)
        table = self._definer().table(path_of(step.tree.relation))
        if not self._block.use.draft.is_new(table.id):
            raise BadDump(
                f'there are rows of "{table.name}", which the dump does not make',
                self._file,
                item.line,
                "0A000",
            )
        if not item.ranges:
            return
        rows = self._copied(table, step.tree) if isinstance(item, CopiedRows) else _inserted(table, step.tree)
        if not rows.columns:
            raise BadDump("rows without columns are not supported", self._file, item.line, "0A000")
        contents = next((each for each in self._contents.rows if each.table == table.id), rows)
        if contents != rows:
            reason = f'the rows of "{table.name}" come with different columns, or in different ways'
            raise BadDump(reason, self._file, item.line, "0A000")
        self._contents.rows.setdefault(rows, []).extend(item.ranges)

    def _copied(self, table: Table, tree: Tree) -> RowsOf:
        wanted = names(tree.attlist)
        shown = _shown(table)
        columns = _named(table, wanted) if wanted else [each for each in shown if each.generated is None]
        return RowsOf(table.id, tuple(each.id for each in columns), COPY, ())


def _inserted(table: Table, tree: Tree) -> RowsOf:
    wanted = [each.name for each in items(tree.cols)]
    columns = _named(table, wanted) if wanted else _shown(table)
    generated = tuple(place for place, each in enumerate(columns) if each.generated is not None)
    ids = tuple(each.id for each in columns if each.generated is None)
    return RowsOf(table.id, ids, INSERTS, generated)


def _shown(table: Table) -> list[Column]:
    return [each for each in visible(table.columns) if not each.is_hidden]


def _named(table: Table, wanted: Sequence[str]) -> list[Column]:
    shown = {each.name: each for each in _shown(table)}
    found = []
    for name in wanted:
        if name not in shown:
            raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist')
        if shown[name] in found:
            raise DuplicateColumn(f'column "{name}" specified more than once')
        found.append(shown[name])
    return found


def _words(text: str) -> str:
    """The names of skipped statements, in words that a user would search for."""
    words = text.upper().split()
    if "OWNER" in words:
        return "OWNER TO"
    return " ".join(words[:2] if words[0] in ("ALTER", "COMMENT", "CREATE") else words[:1])
