"""Views: made, replaced, moved; what they read knows them, and does not go from under them."""

from collections.abc import Callable

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.drops import drop_column, drop_database, drop_objects, drop_schemas
from tenure.catalog.changes.object_changes import (
    create_enum,
    create_table,
    rename_object,
    set_comment,
    set_owner,
    set_schema,
)
from tenure.catalog.changes.table_changes import AlterType, DropColumn, NamedKeyColumn, RenameColumn, alter
from tenure.catalog.changes.view_changes import create_view, rename_view_column, set_view_column_comment
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    AnyDescriptor,
    Depends,
    EnumType,
    NameKey,
    SearchPath,
    Table,
    TypeRef,
    View,
    ViewColumn,
    ViewSource,
    is_dropped,
)
from tenure.catalog.descriptors.validation import problems
from tests.unit.catalog.tables import INT, ROW_ID, TEXT, Shelf, column, schema

APP = 110
A, MOOD, V, W, X = 300, 299, 400, 401, 402
PATH = SearchPath(DEFAULT_DATABASE, ("public",))


def make_view(
    shelf: Shelf,
    id: int,
    name: str,
    *depends: Depends,
    columns: tuple[ViewColumn, ...] = (ViewColumn("id", INT), ViewColumn("x", INT)),
    is_replacing: bool = False,
    parent: int = DEFAULT_SCHEMA,
) -> View:
    return create_view(
        shelf.draft,
        shelf,
        id=id,
        schema=parent,
        name=name,
        owner=ROOT,
        query="SELECT id, x FROM a",
        columns=columns,
        path=PATH,
        sources=[ViewSource(("a",), each.id, (("id", 1),)) for each in depends],
        depends=depends,
        is_replacing=is_replacing,
    )


@pytest.fixture
def shelf() -> Shelf:
    """A table a(id, x, m mood), view v over a's id and x, view w over v's id, view y over both."""
    shelf = Shelf(schema(APP, "app"))
    create_enum(shelf.draft, shelf, id=MOOD, schema=DEFAULT_SCHEMA, name="mood", owner=ROOT, labels=["x"])
    create_table(
        shelf.draft,
        shelf,
        id=A,
        schema=DEFAULT_SCHEMA,
        name="a",
        owner=ROOT,
        columns=[column("id"), column("x"), column("m", type=TypeRef("mood", enum=MOOD))],
        key=(NamedKeyColumn("id"),),
        row_id=ROW_ID,
    )
    make_view(shelf, V, "v", Depends(A, (1, 2)))
    make_view(shelf, W, "w", Depends(V, (1,)))
    make_view(shelf, X, "y", Depends(V, (1,)), Depends(A, (2,)))
    shelf.commit()
    return shelf


def found(shelf: Shelf, id: int) -> AnyDescriptor:
    return shelf.draft.declared.get(id) or shelf.descriptors[id]


def table(shelf: Shelf, id: int = A) -> Table:
    found_ = found(shelf, id)
    assert isinstance(found_, Table)
    return found_


def view(shelf: Shelf, id: int = V) -> View:
    found_ = found(shelf, id)
    assert isinstance(found_, View)
    return found_


def refused(sqlstate: str, action: Callable[[], object]) -> UserError:
    with pytest.raises(UserError) as caught:
        action()
    assert caught.value.sqlstate == sqlstate
    return caught.value


def dropped(shelf: Shelf) -> set[int]:
    return {id for id, each in shelf.draft.declared.items() if is_dropped(each)}


# ── making ─────────────────────────────────────────────────────────────────────────────────────


def test_what_a_view_reads_knows_it(shelf: Shelf) -> None:
    assert table(shelf).dependents == (V, X)
    assert view(shelf).dependents == (W, X)
    assert all(problems(each) == [] for each in shelf.descriptors.values())


def test_a_view_shares_its_names_with_tables(shelf: Shelf) -> None:
    error = refused("42P07", lambda: make_view(shelf, 500, "a"))
    assert str(error) == 'relation "a" already exists'
    error = refused("42P07", lambda: rename_object(shelf.draft, shelf, A, "v"))
    assert str(error) == 'relation "v" already exists'


def test_column_names_differ(shelf: Shelf) -> None:
    twice = (ViewColumn("a", INT), ViewColumn("a", INT))
    error = refused("42701", lambda: make_view(shelf, 500, "n", columns=twice))
    assert str(error) == 'column "a" specified more than once'


def test_renamed_and_moved_its_former_name_drains(shelf: Shelf) -> None:
    rename_object(shelf.draft, shelf, V, "vv")
    set_schema(shelf.draft, shelf, V, APP)
    set_owner(shelf.draft, shelf, V, "ann")
    assert view(shelf).draining == (NameKey(DEFAULT_DATABASE, DEFAULT_SCHEMA, "v"),)
    assert (view(shelf).name, view(shelf).schema, view(shelf).owner) == ("vv", APP, "ann")
    assert shelf.draft.names[NameKey(DEFAULT_DATABASE, APP, "vv")] == V


def test_renaming_what_it_reads_leaves_it_alone(shelf: Shelf) -> None:
    rename_object(shelf.draft, shelf, A, "b")
    alter(shelf.draft, shelf, A, RenameColumn("x", "z"))
    assert V not in shelf.draft.declared


def test_its_columns_are_renamed_and_commented(shelf: Shelf) -> None:
    rename_view_column(shelf.draft, shelf, V, "x", "z")
    set_view_column_comment(shelf.draft, shelf, V, "z", "last")
    assert view(shelf).columns == (ViewColumn("id", INT), ViewColumn("z", INT, "last"))
    set_view_column_comment(shelf.draft, shelf, V, "z", None)
    assert view(shelf).columns[1].comment == ""
    refused("42703", lambda: rename_view_column(shelf.draft, shelf, V, "x", "y"))
    refused("42701", lambda: rename_view_column(shelf.draft, shelf, V, "z", "id"))


# ── OR REPLACE ─────────────────────────────────────────────────────────────────────────────────


def test_a_replacement_keeps_id_and_comment_and_reads_something_else(shelf: Shelf) -> None:
    set_comment(shelf.draft, shelf, V, "said")
    shelf.commit()
    columns = (ViewColumn("id", INT), ViewColumn("x", INT), ViewColumn("m", TEXT))
    made = make_view(shelf, 500, "v", Depends(MOOD), columns=columns, is_replacing=True)
    assert (made.id, made.comment, made.columns, made.dependents) == (V, "said", columns, (W, X))
    assert 500 not in shelf.draft.declared
    assert table(shelf).dependents == (X,)
    mood = found(shelf, MOOD)
    assert isinstance(mood, EnumType) and mood.referents == (A, V)


def test_or_replace_makes_one_where_there_is_none(shelf: Shelf) -> None:
    assert make_view(shelf, 500, "n", Depends(A, (1,)), is_replacing=True).id == 500
    assert table(shelf).dependents == (V, X, 500)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((ViewColumn("id", INT),), "cannot drop columns from view"),
        (
            (ViewColumn("q", INT), ViewColumn("x", INT)),
            'cannot change name of view column "id" to "q"',
        ),
        (
            (ViewColumn("id", INT), ViewColumn("x", TEXT)),
            'cannot change data type of view column "x" from int4 to text',
        ),
    ],
)
def test_a_replacement_keeps_the_columns(shelf: Shelf, columns: tuple[ViewColumn, ...], message: str) -> None:
    error = refused("42P16", lambda: make_view(shelf, 500, "v", columns=columns, is_replacing=True))
    assert str(error) == message


def test_only_views_are_replaced(shelf: Shelf) -> None:
    error = refused("42809", lambda: make_view(shelf, 500, "a", is_replacing=True))
    assert str(error) == '"a" is not a view'


def test_a_view_does_not_come_to_read_itself(shelf: Shelf) -> None:
    error = refused("42P17", lambda: make_view(shelf, 500, "v", Depends(W, (1,)), is_replacing=True))
    assert str(error) == 'infinite recursion detected in rules for relation "v"'


# ── dropping ───────────────────────────────────────────────────────────────────────────────────


def test_a_table_that_views_read_is_in_use(shelf: Shelf) -> None:
    error = refused("2BP01", lambda: drop_objects(shelf.draft, shelf, [A]))
    assert str(error) == "cannot drop table a because other objects depend on it"
    assert error.detail.splitlines() == [
        "view v depends on table a",
        "view w depends on view v",
        "view y depends on table a",
    ]
    assert error.hint == "Use DROP ... CASCADE to drop the dependent objects too."
    assert not shelf.draft


def test_a_table_goes_by_cascade_with_all_views_over_it(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [A], is_cascade=True)
    assert dropped(shelf) == {A, V, W, X}


def test_a_view_that_others_read_is_in_use(shelf: Shelf) -> None:
    error = refused("2BP01", lambda: drop_objects(shelf.draft, shelf, [V]))
    assert error.detail == "view w depends on view v\nview y depends on view v"
    drop_objects(shelf.draft, shelf, [V], is_cascade=True)
    assert dropped(shelf) == {V, W, X}
    assert table(shelf).dependents == ()


def test_what_a_dropped_view_read_forgets_it(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [X, W])
    assert dropped(shelf) == {X, W}
    assert view(shelf).dependents == ()
    assert table(shelf).dependents == (V,)


def test_several_at_once_are_named_together(shelf: Shelf) -> None:
    error = refused("2BP01", lambda: drop_objects(shelf.draft, shelf, [A, MOOD]))
    assert str(error) == "cannot drop desired object(s) because other objects depend on them"


def test_a_column_that_views_read_is_in_use(shelf: Shelf) -> None:
    error = refused("2BP01", lambda: drop_column(shelf.draft, shelf, A, "x"))
    assert str(error) == "cannot drop column x of table a because other objects depend on it"
    assert error.detail.splitlines() == [
        "view v depends on column x of table a",
        "view w depends on view v",
        "view y depends on column x of table a",
    ]
    refused("2BP01", lambda: alter(shelf.draft, shelf, A, DropColumn("x", is_cascade=True)))
    assert not shelf.draft


def test_a_column_goes_by_cascade_with_the_views_that_read_it(shelf: Shelf) -> None:
    drop_column(shelf.draft, shelf, A, "x", is_cascade=True)
    assert dropped(shelf) == {V, W, X}
    shelf.commit()
    shelf.drain()
    assert [each.name for each in table(shelf).columns] == ["id", "m"]
    assert table(shelf).dependents == ()


def test_a_column_that_no_view_reads_is_free_to_go(shelf: Shelf) -> None:
    drop_column(shelf.draft, shelf, A, "m")
    assert dropped(shelf) == set()


def test_a_column_that_views_read_keeps_its_type(shelf: Shelf) -> None:
    error = refused("0A000", lambda: alter(shelf.draft, shelf, A, AlterType("x", TEXT)))
    assert str(error) == "cannot alter type of a column used by a view or rule"
    assert error.detail == 'rule _RETURN on view v depends on column "x"'


def test_a_type_that_views_use_is_in_use(shelf: Shelf) -> None:
    make_view(shelf, 500, "mv", Depends(A, (3,)))
    make_view(shelf, 501, "mc", Depends(MOOD))
    shelf.commit()
    error = refused("2BP01", lambda: drop_objects(shelf.draft, shelf, [MOOD]))
    assert error.detail.splitlines() == [
        "column m of table a depends on type mood",
        "view mv depends on column m of table a",
        "view mc depends on type mood",
    ]
    drop_objects(shelf.draft, shelf, [MOOD], is_cascade=True)
    assert dropped(shelf) == {MOOD, 500, 501}


def test_a_schema_goes_by_cascade_with_views_elsewhere(shelf: Shelf) -> None:
    make_view(shelf, 500, "av", Depends(A, (1,)), parent=APP)
    shelf.commit()
    error = refused("2BP01", lambda: drop_schemas(shelf.draft, shelf, [DEFAULT_SCHEMA], [A, MOOD, V, W, X]))
    assert error.detail.splitlines() == [
        "type public.mood depends on schema public",
        "table public.a depends on schema public",
        "view app.av depends on table public.a",
        "view public.v depends on schema public",
        "view public.w depends on schema public",
        "view public.y depends on schema public",
    ]
    drop_schemas(shelf.draft, shelf, [DEFAULT_SCHEMA], [A, MOOD, V, W, X], is_cascade=True)
    assert dropped(shelf) == {DEFAULT_SCHEMA, A, MOOD, V, W, X, 500}


def test_a_database_goes_by_cascade_with_its_views(shelf: Shelf) -> None:
    contents = [A, MOOD, V, W, X]
    drop_database(shelf.draft, shelf, DEFAULT_DATABASE, [DEFAULT_SCHEMA, APP], contents, is_cascade=True)
    assert dropped(shelf) == {DEFAULT_DATABASE, DEFAULT_SCHEMA, APP, *contents}


def test_a_view_made_in_the_same_transaction_was_never_there(shelf: Shelf) -> None:
    make_view(shelf, 500, "n", Depends(A, (1,)))
    drop_objects(shelf.draft, shelf, [500])
    assert 500 not in shelf.draft.declared
    assert table(shelf).dependents == (V, X)
