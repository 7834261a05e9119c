"""CREATE VIEW: a query under a name, with its names resolved at this moment.

The query is bound once, to learn its columns and what it reads. A view that it reads is not opened: it
counts as a table of its own, so that dependencies go from view to view. A view that reads a temporary object
is temporary too.

Walk: `statements.ddl.ddl_statements` -> `create_view` -> `catalog.changes.view_changes.create_view`;
`sql.names.session_names` reads views.
"""

from collections.abc import Sequence

from tenure.base.errors import NotSupported, SyntaxFault
from tenure.catalog.changes.view_changes import create_view as create
from tenure.catalog.descriptors.definitions import (
    Contained,
    Depends,
    EnumType,
    Schema,
    SearchPath,
    Table,
    TypeRef,
    View,
    ViewColumn,
    ViewSource,
    is_dropped,
    visible,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.role_records import WHOLE_OBJECT
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import sequences
from tenure.expr.types.datatype import Type
from tenure.sql.access import planner as access
from tenure.sql.bind.binder import Binder, bind_query
from tenure.sql.bind.parameters import NoParameters
from tenure.sql.bind.relations import Relation, VirtualTable
from tenure.sql.names.sequence_names import written_name
from tenure.sql.names.session_names import SessionNames, view_query
from tenure.sql.plans.plan import OutputColumn, Query, Scan, Virtual, walk
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.naming import require_free
from tenure.sql.text.parse import Tree, child, deparsed, names, option

VIEW_KEY = "view:"


def create_view(definer: Definer, tree: Tree) -> str | None:
    _refuse(tree)
    query = child(tree, "query")
    read_names = ReadNames(definer.names)
    bound = bind_query(query, read_names, NoParameters())
    name, schema = tree.view.relname, _schema(definer, tree, read_names)
    is_there = definer.is_taken(schema, name)
    definer.require_create(schema)
    if not (tree.replace and is_there):
        require_free(definer, schema, name)
    path = definer.names.path
    create(
        definer.draft,
        definer.use,
        id=definer.fresh_id(),
        schema=schema.id,
        name=name,
        owner=definer.owner,
        query=deparsed(query),
        columns=_columns(bound, names(tree.aliases)),
        path=SearchPath(path.database, tuple(path.names())),
        sources=tuple(read_names.sources.values()),
        depends=_depends(bound, read_names),
        is_replacing=tree.replace,
        type_name=lambda ref: definer.type_of(ref).sql_name,
    )
    return None


def _schema(definer: Definer, tree: Tree, names: "ReadNames") -> Schema:
    """Where the view is made: among the session's temporary objects if it reads one of them."""
    is_temporary = tree.view.relpersistence == "t"
    own = definer.session.temporary.schema_id
    sources = (definer.now(each.id) for each in names.sources.values())
    if (
        not is_temporary
        and own
        and any(isinstance(each, Contained) and each.schema == own for each in sources)
    ):
        definer.notice(f'view "{tree.view.relname}" will be a temporary view')
        is_temporary = True
    schema = definer.schema_for(path_of(tree.view)[:-1], is_temporary=is_temporary)
    if definer.is_temporary_schema(schema):
        definer.session.access.name_now(definer.owner)  # from now on the session knows the owner by its id
    return schema


def relies_on_key(definer: Definer, id: int, table: Table) -> bool:
    """Whether a dependent of a table is a view whose GROUP BY needs the table's primary key."""
    view = definer.names.descriptor(id)
    if not isinstance(view, View) or is_dropped(view):
        return False
    query = view_query(view, definer.names)
    binder = Binder(query.names, NoParameters(), query.tree)
    binder.query(query.tree)
    return table.id in binder.binding.keys_relied_on


def _refuse(tree: Tree) -> None:
    if option(tree, "with_check_option") != "NO_CHECK_OPTION" or tree.options:
        raise NotSupported("options of views are not supported")
    query = child(tree, "query")
    if query.HasField("into_clause"):
        raise NotSupported("views must not contain SELECT INTO")


def _columns(query: Query, column_names: Sequence[str]) -> list[ViewColumn]:
    if len(column_names) > len(query.outputs):
        raise SyntaxFault("CREATE VIEW specifies more column names than columns")
    titles = [*column_names, *(each.name for each in query.outputs[len(column_names) :])]
    return [ViewColumn(title, each.type.ref) for title, each in zip(titles, query.outputs, strict=True)]


def _depends(bound: Query, names: "ReadNames") -> list[Depends]:
    """The columns of each source that the query names, or reads as pruning finds."""
    query = access.with_access(bound)
    columns = {each.id: set(names.columns.get(each.id, ())) for each in names.sources.values()}
    for plan in (query.plan, *(each.plan for each in query.nested)):
        for node in walk(plan):
            if isinstance(node, Scan):
                columns[node.table.id].update(node.columns)
            elif isinstance(node, Virtual) and node.source.startswith(VIEW_KEY):
                columns[int(node.source[len(VIEW_KEY) :])].update(each + 1 for each in node.columns)
    for output in query.outputs:
        if output.type.ref.enum:
            columns.setdefault(output.type.ref.enum, set())
    return [Depends(id, tuple(sorted(read))) for id, read in columns.items()]


class ReadNames:
    """The names of a view's query as the session means them; remembers what each meant."""

    def __init__(self, names: SessionNames) -> None:
        self._names = names
        self.sources: dict[tuple[str, ...], ViewSource] = {}
        self.columns: dict[int, set[int]] = {}
        """Those that the query names, by table."""

    def relation(self, name: Sequence[str], position: int) -> Relation:
        found = self._names.object(name)
        match found:
            case Table():
                relation = self._names.relation(name, position)
                if isinstance(relation, Table):
                    shown = (each for each in visible(found.columns) if not each.is_hidden)
                    self._note(name, found.id, tuple((each.name, each.id) for each in shown))
                return relation
            case View() if not is_dropped(found):
                self._note(name, found.id, tuple((each.name, at) for at, each in enumerate(found.columns, 1)))
                return VirtualTable(found.name, self._outputs(found), f"{VIEW_KEY}{found.id}")
            case SequenceDescriptor():
                self._note(name, found.id)
        return self._names.relation(name, position)

    def _outputs(self, view: View) -> tuple[OutputColumn, ...]:
        return tuple(OutputColumn(each.name, self._type(each.type)) for each in view.columns)

    def _type(self, ref: TypeRef) -> Type:
        return self._names.type_of(ref)

    def _note(self, name: Sequence[str], id: int, columns: tuple[tuple[str, int], ...] = ()) -> None:
        self.sources[tuple(name)] = ViewSource(tuple(name), id, columns)

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...], *, is_array: bool) -> Type:
        result = self._names.type_named(name, modifiers, is_array=is_array)
        if result.ref.enum:
            self._note(name, result.ref.enum)
        return result

    def check_size(self, levels: int) -> None:
        self._names.check_size(levels)

    def enum(self, id: int) -> EnumType:
        return self._names.enum(id)

    def require(self, id: int, privilege: int, column: int = WHOLE_OBJECT) -> None:
        """To define a view needs nothing of what it reads: its owner is asked whenever it is used.

        But it counts as a use of the column, also of one that pruning finds unread: the * of a subquery.
        """
        if column != WHOLE_OBJECT:
            self.columns.setdefault(id, set()).add(column)

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        result = self._names.call(name, arguments)
        written = None if result is None else written_name(name[-1], arguments)
        if result is not None and written is not None:
            for id in sequences(result.node):
                self._note(written, id)
        return result
