"""Views: created, replaced, and registered with the objects they read.

A view is a text and the meaning of its names. The objects that it reads refer to it: a table or view has it
among its `dependents`, a type among its `referents`, so that neither can be dropped. A view has no rows and
no elements; a new version is public at once, and its former name drains.

A view that replaces another keeps its columns, so that its users go on; new columns may only follow them.

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
    catalog: CatalogBelow,
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
    """Creates a view; with `is_replacing` (OR REPLACE), in place of the one that has its name, if any.

    The replaced view keeps its id, owner, privileges and comment. `type_name` renders a type for error
    messages.
    """
    parent = schema_of(draft, catalog, schema)
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
    former = _holder(draft, catalog, view) if is_replacing else None
    if former is not None:
        return _replaced(draft, catalog, former, view, type_name)
    require_free(draft, catalog, view)
    draft.create(view)
    draft.rely_on(parent)
    _know_each_other(draft, catalog, None, view)
    return view


def rename_view_column(draft: Draft, catalog: CatalogBelow, id: int, name: str, to: str) -> View:
    """ALTER VIEW ... RENAME COLUMN; the text stays, as its columns are known by number."""
    view = view_of(draft, catalog, id)
    column = view_column(view, name)
    if name == to:
        return view
    if any(each.name == to for each in view.columns):
        raise DuplicateColumn(f'column "{to}" of relation "{view.name}" already exists')
    return _with_column(draft, view, column, replace(column, name=to))


def set_view_column_comment(
    draft: Draft, catalog: CatalogBelow, id: int, name: str, comment: str | None
) -> View:
    view = view_of(draft, catalog, id)
    column = view_column(view, name)
    return _with_column(draft, view, column, replace(column, comment=comment or ""))


def view_of(draft: Draft, catalog: CatalogBelow, id: int) -> View:
    view = descriptor_of(draft, catalog, id)
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


def _holder(draft: Draft, catalog: CatalogBelow, view: View) -> View | None:
    """The view that has the name already; no other object may have it."""
    place = place_of(view)
    id = draft.names[place] if place in draft.names else catalog.id_at(place)
    holder = None if id is None else descriptor_of(draft, catalog, id)
    if holder is None or is_dropped(holder) or place_of(holder) != place:
        return None
    if not isinstance(holder, View):
        raise WrongObjectType(f'"{view.name}" is not a view')
    return holder


def _replaced(
    draft: Draft, catalog: CatalogBelow, former: View, view: View, type_name: Callable[[TypeRef], str]
) -> View:
    _require_same_columns(former, view, type_name)
    _require_no_cycle(draft, catalog, former, view)
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
    _know_each_other(draft, catalog, former, changed)
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


def _require_no_cycle(draft: Draft, catalog: CatalogBelow, former: View, view: View) -> None:
    """A view must not read itself, directly or through others."""
    left, seen = [each.id for each in view.depends], set[int]()
    while left:
        id = left.pop()
        if id == former.id:
            raise InvalidObject(f'infinite recursion detected in rules for relation "{former.name}"')
        found = descriptor_of(draft, catalog, id)
        if isinstance(found, View) and id not in seen:
            seen.add(id)
            left += [each.id for each in found.depends]


def _know_each_other(draft: Draft, catalog: CatalogBelow, former: View | None, view: View) -> None:
    before = set() if former is None else {each.id for each in former.depends}
    after = {each.id for each in view.depends}
    for id in sorted(before ^ after):
        set_dependent(draft, catalog, id, view.id, is_used=id in after)
