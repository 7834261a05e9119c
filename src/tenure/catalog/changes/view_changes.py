"""Views: made, replaced and told apart from what they read.

A view is one text and what it means. What it reads refers to it: a table or view as one of its
`dependents`, a type as one of its `referents`, so that neither goes from under it. A view has no
rows and no elements; a version of it is there at once, as of any object, and its former name drains.

A view that takes another's place keeps its columns, so that those who use it go on: new ones may
only come after them.

Walk: `sql` calls these for CREATE VIEW, and for names and comments of a view's columns.
"""

from collections.abc import Callable, Sequence

from tenure.base.errors import DuplicateColumn, InvalidObject, InvalidTable, UndefinedColumn, WrongObjectType
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.changes.free_names import require_free, schema_of
from tenure.catalog.changes.table_changes import CatalogBelow, descriptor_of, set_dependent
from tenure.catalog.descriptors.definitions import (
    Depends,
    DescriptorState,
    Grant,
    SearchPath,
    TypeRef,
    View,
    ViewColumn,
    ViewSource,
    is_dropped,
    place_of,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft


def create_view(
    draft: Draft,
    known: CatalogBelow,
    *,
    id: int,
    schema: int,
    name: str,
    owner: str,
    query: str,
    columns: Sequence[ViewColumn],
    path: SearchPath,
    sources: Sequence[ViewSource] = (),
    depends: Sequence[Depends] = (),
    privileges: tuple[Grant, ...] = (),
    is_replacing: bool = False,
    type_name: Callable[[TypeRef], str] = lambda type: type.name,
) -> View:
    """A view; with `is_replacing` (OR REPLACE), in place of the one that has its name, if any.

    The one that is replaced keeps its id, owner, privileges and comment. `type_name` gives a type
    as people read it, for what is wrong with a replacement.
    """
    parent = schema_of(draft, known, schema)
    _require_distinct(columns)
    view = View(
        id,
        1,
        ZERO_AT,
        name,
        owner,
        DescriptorState.PUBLIC,
        privileges,
        (),
        database=parent.database,
        schema=schema,
        query=query,
        columns=tuple(columns),
        path=path,
        sources=tuple(sources),
        depends=tuple(depends),
    )
    former = _holder(draft, known, view) if is_replacing else None
    if former is not None:
        return _replaced(draft, known, former, view, type_name)
    require_free(draft, known, view)
    draft.create(view)
    draft.rely_on(parent)
    _know_each_other(draft, known, None, view)
    return view


def rename_view_column(draft: Draft, known: CatalogBelow, id: int, name: str, to: str) -> View:
    """ALTER VIEW ... RENAME COLUMN; the text stays, its columns are counted."""
    view = view_of(draft, known, id)
    column = view_column(view, name)
    if name == to:
        return view
    if any(each.name == to for each in view.columns):
        raise DuplicateColumn(f'column "{to}" of relation "{view.name}" already exists')
    return _with_column(draft, view, column, replace(column, name=to))


def set_view_column_comment(
    draft: Draft, known: CatalogBelow, id: int, name: str, comment: str | None
) -> View:
    view = view_of(draft, known, id)
    column = view_column(view, name)
    return _with_column(draft, view, column, replace(column, comment=comment or ""))


def view_of(draft: Draft, known: CatalogBelow, id: int) -> View:
    view = descriptor_of(draft, known, id)
    assert isinstance(view, View), f"{id} is no view"
    return view


def view_column(view: View, name: str) -> ViewColumn:
    column = next((each for each in view.columns if each.name == name), None)
    if column is None:
        raise UndefinedColumn(f'column "{name}" of relation "{view.name}" does not exist')
    return column


def _with_column(draft: Draft, view: View, column: ViewColumn, altered: ViewColumn) -> View:
    columns = tuple(altered if each is column else each for each in view.columns)
    view = replace(view, columns=columns)
    draft.declare(view, made_from=view.version)
    return view


def _require_distinct(columns: Sequence[ViewColumn]) -> None:
    names: set[str] = set()
    for column in columns:
        if column.name in names:
            raise DuplicateColumn(f'column "{column.name}" specified more than once')
        names.add(column.name)


# ── OR REPLACE ─────────────────────────────────────────────────────────────────────────────────


def _holder(draft: Draft, known: CatalogBelow, view: View) -> View | None:
    """The view that has the name already; nothing else may have it."""
    place = place_of(view)
    id = draft.names[place] if place in draft.names else known.id_at(place)
    holder = None if id is None else descriptor_of(draft, known, id)
    if holder is None or is_dropped(holder) or place_of(holder) != place:
        return None
    if not isinstance(holder, View):
        raise WrongObjectType(f'"{view.name}" is not a view')
    return holder


def _replaced(
    draft: Draft, known: CatalogBelow, former: View, view: View, type_name: Callable[[TypeRef], str]
) -> View:
    _require_same_columns(former, view, type_name)
    _require_no_cycle(draft, known, former, view)
    comments = [each.comment for each in former.columns] + [""] * len(view.columns)
    columns = tuple(
        replace(column, comment=comment) for column, comment in zip(view.columns, comments, strict=False)
    )
    changed = replace(
        former,
        query=view.query,
        columns=columns,
        path=view.path,
        sources=view.sources,
        depends=view.depends,
    )
    draft.declare(changed, made_from=former.version)
    _know_each_other(draft, known, former, changed)
    return changed


def _require_same_columns(former: View, view: View, type_name: Callable[[TypeRef], str]) -> None:
    if len(view.columns) < len(former.columns):
        raise InvalidTable("cannot drop columns from view")
    for old, new in zip(former.columns, view.columns, strict=False):
        if old.name != new.name:
            raise InvalidTable(
                f'cannot change name of view column "{old.name}" to "{new.name}"',
                hint="Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            )
        if old.type != new.type:
            raise InvalidTable(
                f'cannot change data type of view column "{old.name}"'
                f" from {type_name(old.type)} to {type_name(new.type)}"
            )


def _require_no_cycle(draft: Draft, known: CatalogBelow, former: View, view: View) -> None:
    """A view cannot come to read itself, however far around."""
    left, seen = [each.id for each in view.depends], set[int]()
    while left:
        id = left.pop()
        if id == former.id:
            raise InvalidObject(f'infinite recursion detected in rules for relation "{former.name}"')
        found = descriptor_of(draft, known, id)
        if isinstance(found, View) and id not in seen:
            seen.add(id)
            left += [each.id for each in found.depends]


def _know_each_other(draft: Draft, known: CatalogBelow, former: View | None, view: View) -> None:
    before = set() if former is None else {each.id for each in former.depends}
    after = {each.id for each in view.depends}
    for id in sorted(before ^ after):
        set_dependent(draft, known, id, view.id, is_used=id in after)
