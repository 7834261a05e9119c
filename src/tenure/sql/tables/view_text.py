"""A view's query as text that means the same to its reader: with the names that things have now.

    written      SELECT * FROM users u            CREATE VIEW v (n) AS SELECT name FROM users
    to a reader  SELECT * FROM app.people u       SELECT name AS n FROM app.users

A view stores its text as it was written and what each name in it stood for. A name that means its object to
the reader too stays as it is. Another is written anew: with its schema, and under an alias if it was renamed.
Where the columns of a source are no longer those that the view knows, the source becomes a subquery that has
them. The outputs get the names of the view's columns, which the text alone need not have.

Walk: `sql.tables.pg_catalog.definition_text` calls `view_text` for pg_get_viewdef.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Contained,
    Table,
    View,
    ViewSource,
    visible,
)
from tenure.sql.names.sequence_names import OF_SEQUENCES, path_of
from tenure.sql.text.parse import Tree, deparsed, has, items, kind, names, one, unwrap
from tenure.sql.text.quoting import quoted

Descriptors = Callable[[int], AnyDescriptor | None]


class ReaderNames(Protocol):
    """How the reader of the text finds objects."""

    def schema_name(self, each: Contained) -> str: ...

    def is_visible(self, each: Contained) -> bool:
        """Whether its bare name means it."""
        ...


Scope = frozenset[str]
"""The WITH queries that a bare name may mean."""


def view_text(view: View, descriptor: Descriptors, names_of: ReaderNames) -> str:
    parsed = one(view.query)
    assert parsed is not None, "a view has a query"
    rewriting = _Rewriting(view, descriptor, names_of)
    are_listed = _name_outputs(parsed.tree, view, rewriting)
    rewriting.walk(parsed.tree, frozenset())
    if are_listed:
        return deparsed(parsed.tree) if rewriting.has_changed else view.query
    columns = ", ".join(quoted(each.name) for each in view.columns)
    return f"SELECT * FROM ({deparsed(parsed.tree)}) {quoted(view.name)}({columns})"


class _Rewriting:
    """The tree of a view's query, changed in place."""

    def __init__(self, view: View, descriptor: Descriptors, names_of: ReaderNames) -> None:
        self._names_of = names_of
        self._sources = {each.name: each for each in view.sources}
        self._now = {each.id: descriptor(each.id) for each in view.sources}
        self.has_changed = False

    def source(self, name: tuple[str, ...]) -> ViewSource | None:
        return self._sources.get(name)

    def walk(self, tree: Tree, scope: Scope) -> None:
        match kind(tree):
            case "Node":
                self._node(tree, scope)
            case "SelectStmt" if has(tree, "with_clause"):
                inside = self._with(tree.with_clause, scope)
                self._children(tree, inside, skip="with_clause")
            case "TypeName":
                self._rename(tree.names)
                self._children(tree, scope)
            case "FuncCall":
                self._sequence(tree)
                self._children(tree, scope)
            case "ColumnRef":
                self._column(tree)
            case _:
                self._children(tree, scope)

    def _children(self, tree: Tree, scope: Scope, skip: str = "") -> None:
        for field, value in tree.ListFields():
            if field.message_type is not None and field.name != skip:
                for each in value if field.is_repeated else (value,):
                    self.walk(each, scope)

    def _with(self, clause: Tree, scope: Scope) -> Scope:
        """A WITH query sees those before it; a recursive one also itself and those behind it."""
        listed = items(clause.ctes)
        everything = scope | {each.ctename for each in listed}
        for each in listed:
            self.walk(each.ctequery, everything if clause.recursive else scope)
            scope |= {each.ctename}
        return everything

    # ── relations ──────────────────────────────────────────────────────────────────────────────

    def _node(self, node: Tree, scope: Scope) -> None:
        tree = unwrap(node)
        if tree is None:
            return
        if kind(tree) != "RangeVar":
            self.walk(tree, scope)
            return
        name = written(tree)
        source = None if len(name) == 1 and name[0] in scope else self._sources.get(name)
        now = None if source is None else self._now[source.id]
        if source is None or not isinstance(now, Contained):
            return
        columns = _columns(now)
        if columns == source.columns:
            self._rename_relation(tree, name, now)
        else:
            self._replace_relation(node, source, now, {id: each for each, id in columns})

    def _rename_relation(self, tree: Tree, name: tuple[str, ...], now: Contained) -> None:
        path = self._means(name, now)
        if path == name:
            return
        tree.catalogname, tree.schemaname, tree.relname = ("", *path) if len(path) > 1 else ("", "", *path)
        if path[-1] != name[-1] and not has(tree, "alias"):
            tree.alias.aliasname = name[-1]
        self.has_changed = True

    def _replace_relation(
        self, node: Tree, source: ViewSource, now: Contained, columns: dict[int, str]
    ) -> None:
        """With the columns that the view knows, under their former names, so far as they are there."""
        alias = node.range_var.alias if has(node.range_var, "alias") else None
        path = ".".join(map(quoted, self._means(source.name, now)))
        listed = ", ".join(
            f"{quoted(columns[id])} AS {quoted(name)}" for name, id in source.columns if id in columns
        )
        parsed = one(f"SELECT FROM (SELECT {listed} FROM {path}) AS {quoted(source.name[-1])}")
        assert parsed is not None
        made = parsed.tree.from_clause[0]
        if alias is not None:
            made.range_subselect.alias.CopyFrom(alias)
        node.CopyFrom(made)
        self.has_changed = True

    def _means(self, name: tuple[str, ...], now: Contained) -> tuple[str, ...]:
        """The name as written where it still is the object's; else the one that the reader needs."""
        is_known = self._names_of.is_visible(now)
        if len(name) == 1 and is_known and now.name == name[0]:
            return name
        path = (self._names_of.schema_name(now), now.name)
        if name[-2:] == path:
            return name
        return path[-1:] if is_known else path

    def _column(self, tree: Tree) -> None:
        """schema.table.column: the table alone, where it got another name."""
        fields = items(tree.fields)
        path = tuple(each.sval for each in fields[:-1] if kind(each) == "String")
        source = self._sources.get(path) if len(path) > 1 and len(path) == len(fields) - 1 else None
        now = None if source is None else self._now[source.id]
        if source is None or not isinstance(now, Contained):
            return
        if _columns(now) != source.columns or self._means(path, now) != path:
            del tree.fields[: len(path) - 1]
            self.has_changed = True

    # ── types and sequences ────────────────────────────────────────────────────────────────────

    def _rename(self, parts: Tree) -> None:
        """The names of a type, in place."""
        name = tuple(names(parts))
        source = self._sources.get(name)
        now = None if source is None else self._now[source.id]
        if not isinstance(now, Contained) or (path := self._means(name, now)) == name:
            return
        del parts[:]
        for each in path:
            parts.add().string.sval = each
        self.has_changed = True

    def _sequence(self, tree: Tree) -> None:
        """nextval('counter')"""
        arguments = items(tree.args)
        if (names(tree.funcname)[-1], len(arguments)) not in OF_SEQUENCES:
            return
        constant = arguments[0]
        while kind(constant) == "TypeCast":
            constant = unwrap(constant.arg)
        name = path_of(constant.sval.sval)
        source = self._sources.get(name)
        now = None if source is None else self._now[source.id]
        if isinstance(now, Contained) and (path := self._means(name, now)) != name:
            constant.sval.sval = ".".join(map(quoted, path))
            self.has_changed = True


def written(tree: Tree) -> tuple[str, ...]:
    """The parts of the name of a RangeVar."""
    return tuple(each for each in (tree.catalogname, tree.schemaname, tree.relname) if each)


def _columns(now: Contained) -> tuple[tuple[str, int], ...]:
    match now:
        case Table():
            return tuple((each.name, each.id) for each in visible(now.columns) if not each.is_hidden)
        case View():
            return tuple((each.name, place) for place, each in enumerate(now.columns, 1))
    return ()


def _name_outputs(tree: Tree, view: View, rewriting: _Rewriting) -> bool:
    """Gives the outputs the names of the view's columns. False if the text does not list them one by one."""
    while has(tree, "larg"):
        tree = tree.larg
    targets = items(tree.target_list)
    wanted = [each.name for each in view.columns]
    if any(_is_star(each) for each in targets):
        return list(_of_star(tree, rewriting)) == wanted
    if len(targets) != len(wanted):
        return False  # VALUES
    for target, name in zip(targets, wanted, strict=True):
        if _output_name(target) != name:
            target.name = name
            rewriting.has_changed = True
    return True


def _is_star(target: Tree) -> bool:
    value = unwrap(target.val)
    return kind(value) == "ColumnRef" and kind(unwrap(value.fields[-1])) == "A_Star"


def _output_name(target: Tree) -> str:
    """The name that an output has for sure; "" where it would be chosen."""
    value = unwrap(target.val)
    if target.name or kind(value) != "ColumnRef":
        return str(target.name)
    return str(unwrap(value.fields[-1]).sval)


def _of_star(tree: Tree, rewriting: _Rewriting) -> Iterator[str]:
    """The names that SELECT * FROM one source gives, if they are plain; none of a longer query."""
    sources = items(tree.from_clause)
    if len(tree.target_list) != 1 or len(sources) != 1 or kind(sources[0]) == "JoinExpr":
        return
    if sources[0].alias.colnames:
        yield from names(sources[0].alias.colnames)
    elif kind(sources[0]) == "RangeVar" and (source := rewriting.source(written(sources[0]))) is not None:
        yield from (name for name, _ in source.columns)
