"""Sequences in the catalog: options, ownership, defaults that call them; identity and generated columns."""

from collections.abc import Callable
from functools import partial

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.drops import drop_column, drop_identity, drop_objects, drop_schemas
from tenure.catalog.changes.object_changes import create_table, rename_object, set_owner, set_schema
from tenure.catalog.changes.sequence_changes import (
    NOTHING,
    SequenceOptions,
    alter_sequence,
    create_sequence,
    set_owned_by,
)
from tenure.catalog.changes.table_changes import (
    AddColumn,
    AddIdentity,
    AlterType,
    DropColumn,
    DropDefault,
    DropExpression,
    DropNotNull,
    NamedKeyColumn,
    SetDefault,
    SetIdentity,
    alter,
    owned_sequences,
)
from tenure.catalog.descriptors.definitions import (
    DEFAULT_SCHEMA,
    ROOT,
    Expression,
    OwnedBy,
    Sequence,
    Table,
    TypeRef,
    is_dropped,
)
from tenure.catalog.descriptors.validation import problems
from tests.unit.catalog.tables import INT, ROW_ID, TEXT, Shelf, column, reading, schema

APP = 110
S, T, U, FREE = 300, 301, 302, 303


def next_of(sequence: int) -> Expression:
    return Expression(b"nextval", "nextval('s')", (), (sequence,))


def make(shelf: Shelf, id: int, name: str, *columns: AddColumn) -> Table:
    return create_table(
        shelf.draft,
        shelf,
        id=id,
        schema=DEFAULT_SCHEMA,
        name=name,
        owner=ROOT,
        columns=columns,
        key=(NamedKeyColumn("id"),),
        row_id=ROW_ID,
    )


def sequence(shelf: Shelf, id: int, name: str, options: SequenceOptions = NOTHING) -> Sequence:
    return create_sequence(
        shelf.draft, shelf, id=id, schema=DEFAULT_SCHEMA, name=name, owner=ROOT, options=options
    )


@pytest.fixture
def shelf() -> Shelf:
    """t(id serial primary key, v), u(id, n default nextval of t's sequence), and a sequence of its own."""
    shelf = Shelf(schema(APP, "app"))
    sequence(shelf, S, "t_id_seq")
    sequence(shelf, FREE, "free")
    make(shelf, T, "t", column("id", default=next_of(S)), column("v"))
    set_owned_by(shelf.draft, shelf, S, OwnedBy(T, 1))
    make(shelf, U, "u", column("id"), column("n", default=next_of(S)))
    shelf.commit()
    return shelf


def found(shelf: Shelf, id: int) -> object:
    return shelf.draft.declared.get(id) or shelf.descriptors[id]


def table(shelf: Shelf, id: int = T) -> Table:
    each = found(shelf, id)
    assert isinstance(each, Table)
    return each


def stored(shelf: Shelf, id: int = S) -> Sequence:
    each = found(shelf, id)
    assert isinstance(each, Sequence)
    return each


def refused(sqlstate: str, action: Callable[[], object]) -> UserError:
    with pytest.raises(UserError) as caught:
        action()
    assert caught.value.sqlstate == sqlstate
    return caught.value


def dropped(shelf: Shelf) -> set[int]:
    return {id for id, each in shelf.draft.declared.items() if is_dropped(each)}


# ── options ────────────────────────────────────────────────────────────────────────────────────


def test_what_nobody_says_is_as_in_postgresql() -> None:
    shelf = Shelf()
    up = sequence(shelf, 500, "up")
    assert (up.start, up.increment, up.minimum, up.maximum, up.cache) == (1, 1, 1, 2**63 - 1, 1)
    down = sequence(shelf, 501, "down", SequenceOptions(type=TypeRef("int2"), increment=-2))
    assert (down.start, down.minimum, down.maximum) == (-1, -(2**15), -1)
    assert problems(up) == problems(down) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SequenceOptions(increment=0), "INCREMENT must not be zero"),
        (
            SequenceOptions(type=TypeRef("int2"), maximum=100000),
            "MAXVALUE (100000) is out of range for sequence data type smallint",
        ),
        (
            SequenceOptions(type=TypeRef("int4"), minimum=-(2**40)),
            f"MINVALUE (-{2**40}) is out of range for sequence data type integer",
        ),
        (SequenceOptions(minimum=5, maximum=5), "MINVALUE (5) must be less than MAXVALUE (5)"),
        (SequenceOptions(start=0), "START value (0) cannot be less than MINVALUE (1)"),
        (SequenceOptions(start=10, maximum=5), "START value (10) cannot be greater than MAXVALUE (5)"),
        (SequenceOptions(cache=0), "CACHE (0) must be greater than zero"),
        (SequenceOptions(type=TypeRef("text")), "sequence type must be smallint, integer, or bigint"),
    ],
)
def test_options_that_do_not_fit(options: SequenceOptions, message: str) -> None:
    assert str(refused("22023", lambda: sequence(Shelf(), 500, "s", options))) == message


def test_altered_it_keeps_what_nobody_says(shelf: Shelf) -> None:
    alter_sequence(shelf.draft, shelf, FREE, SequenceOptions(increment=5, is_cycle=True))
    changed = stored(shelf, FREE)
    assert (changed.increment, changed.is_cycle, changed.start, changed.maximum) == (5, True, 1, 2**63 - 1)


def test_a_bound_that_was_the_types_follows_the_type(shelf: Shelf) -> None:
    alter_sequence(shelf.draft, shelf, FREE, SequenceOptions(type=TypeRef("int2")))
    assert stored(shelf, FREE).maximum == 2**15 - 1
    alter_sequence(shelf.draft, shelf, FREE, SequenceOptions(maximum=10))
    alter_sequence(shelf.draft, shelf, FREE, SequenceOptions(type=TypeRef("int4")))
    assert stored(shelf, FREE).maximum == 10
    alter_sequence(shelf.draft, shelf, FREE, SequenceOptions(has_no_maximum=True))
    assert stored(shelf, FREE).maximum == 2**31 - 1


def test_where_it_is_has_to_fit_what_it_becomes(shelf: Shelf) -> None:
    options = SequenceOptions(maximum=10)
    error = refused("22023", lambda: alter_sequence(shelf.draft, shelf, FREE, options, last_value=11))
    assert str(error) == "RESTART value (11) cannot be greater than MAXVALUE (10)"


# ── who owns it, who calls it ──────────────────────────────────────────────────────────────────


def test_tables_and_sequences_know_each_other(shelf: Shelf) -> None:
    assert stored(shelf).owned_by == OwnedBy(T, 1)
    assert stored(shelf).dependents == (T, U)
    assert [each.id for each in owned_sequences(shelf.draft, shelf, table(shelf))] == [S]
    alter(shelf.draft, shelf, U, DropDefault("n"))
    assert stored(shelf).dependents == (T,)
    alter(shelf.draft, shelf, U, SetDefault("n", next_of(FREE)))
    assert stored(shelf, FREE).dependents == (U,)


def test_ownership_is_given_up_and_moves(shelf: Shelf) -> None:
    set_owned_by(shelf.draft, shelf, S, None)
    assert (stored(shelf).owned_by, table(shelf).sequences) == (None, ())
    set_owned_by(shelf.draft, shelf, S, OwnedBy(U, 2))
    assert (table(shelf, U).sequences, table(shelf).sequences) == ((S,), ())


def test_an_owner_has_the_same_owner_and_schema(shelf: Shelf) -> None:
    set_schema(shelf.draft, shelf, FREE, APP)
    error = refused("55000", lambda: set_owned_by(shelf.draft, shelf, FREE, OwnedBy(T, 1)))
    assert str(error) == "sequence must be in same schema as table it is linked to"
    set_owner(shelf.draft, shelf, FREE, "ann")
    error = refused("55000", lambda: set_owned_by(shelf.draft, shelf, FREE, OwnedBy(T, 1)))
    assert str(error) == "sequence must have same owner as table it is linked to"


def test_an_owned_sequence_follows_its_table(shelf: Shelf) -> None:
    error = refused("0A000", lambda: set_schema(shelf.draft, shelf, S, APP))
    assert str(error) == "cannot move an owned sequence into another schema"
    assert error.detail == 'Sequence "t_id_seq" is linked to table "t".'
    error = refused("0A000", lambda: set_owner(shelf.draft, shelf, S, "ann"))
    assert str(error) == 'cannot change owner of sequence "t_id_seq"'
    set_schema(shelf.draft, shelf, T, APP)
    set_owner(shelf.draft, shelf, T, "ann")
    assert (stored(shelf).schema, stored(shelf).owner) == (APP, "ann")
    rename_object(shelf.draft, shelf, S, "other")
    assert stored(shelf).name == "other"


# ── dropping ───────────────────────────────────────────────────────────────────────────────────


def test_a_sequence_that_defaults_call_is_in_use(shelf: Shelf) -> None:
    error = refused("2BP01", lambda: drop_objects(shelf.draft, shelf, [S]))
    assert str(error) == "cannot drop sequence t_id_seq because other objects depend on it"
    assert error.detail.splitlines() == [
        "default value for column id of table t depends on sequence t_id_seq",
        "default value for column n of table u depends on sequence t_id_seq",
    ]
    drop_objects(shelf.draft, shelf, [S], is_cascade=True)
    assert dropped(shelf) == {S}
    assert [each.default for each in (*table(shelf).columns, *table(shelf, U).columns)] == [None] * 4
    assert table(shelf).sequences == ()


def test_an_owned_sequence_goes_with_its_table_unless_others_call_it(shelf: Shelf) -> None:
    error = refused("2BP01", lambda: drop_objects(shelf.draft, shelf, [T]))
    assert error.detail == "default value for column n of table u depends on sequence t_id_seq"
    alter(shelf.draft, shelf, U, DropDefault("n"))
    drop_objects(shelf.draft, shelf, [T])
    assert dropped(shelf) == {S, T}


def test_an_owned_sequence_goes_with_its_column(shelf: Shelf) -> None:
    set_owned_by(shelf.draft, shelf, FREE, OwnedBy(T, 2))
    shelf.commit()
    drop_column(shelf.draft, shelf, T, "v")
    assert dropped(shelf) == {FREE}
    assert table(shelf).sequences == (S,)


def test_a_dropped_table_is_forgotten_by_the_sequences_it_called(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [U])
    assert stored(shelf).dependents == (T,)
    drop_objects(shelf.draft, shelf, [T])
    assert dropped(shelf) == {S, T, U}


def test_nobody_is_told_of_an_owned_sequence_in_a_schema(shelf: Shelf) -> None:
    contents = [S, T, U, FREE]
    error = refused("2BP01", lambda: drop_schemas(shelf.draft, shelf, [DEFAULT_SCHEMA], contents))
    assert error.detail.splitlines() == [
        "table public.t depends on schema public",
        "table public.u depends on schema public",
        "sequence public.free depends on schema public",
    ]
    drop_schemas(shelf.draft, shelf, [DEFAULT_SCHEMA], contents, is_cascade=True)
    assert dropped(shelf) == {DEFAULT_SCHEMA, *contents}


def test_a_column_with_a_sequence_is_not_rewritten(shelf: Shelf) -> None:
    set_owned_by(shelf.draft, shelf, FREE, OwnedBy(T, 2))
    rewritten = AlterType("v", TEXT, computed=reading(2))
    error = refused("0A000", lambda: alter(shelf.draft, shelf, T, rewritten))
    assert "owns a sequence" in str(error)


# ── identity ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def identity(shelf: Shelf) -> Shelf:
    """i(id identity, z), whose sequence is 500."""
    sequence(shelf, 500, "i_id_seq")
    id = column("id", default=next_of(500), identity="always", is_nullable=False)
    make(shelf, 501, "i", id, column("z"), column("n", is_nullable=False))
    set_owned_by(shelf.draft, shelf, 500, OwnedBy(501, 1))
    shelf.commit()
    return shelf


def test_an_identity_columns_sequence_is_part_of_it(identity: Shelf) -> None:
    error = refused("2BP01", lambda: drop_objects(identity.draft, identity, [500], is_cascade=True))
    assert str(error) == "cannot drop sequence i_id_seq because column id of table i requires it"
    assert error.hint == "You can drop column id of table i instead."
    error = refused("0A000", lambda: set_owned_by(identity.draft, identity, 500, None))
    assert str(error) == "cannot change ownership of identity sequence"


def test_an_identity_column_keeps_default_and_not_null(identity: Shelf) -> None:
    for change in (SetDefault("id", reading()), DropDefault("id")):
        error = refused("42601", partial(alter, identity.draft, identity, 501, change))
        assert str(error) == 'column "id" of relation "i" is an identity column'


def test_drop_not_null_of_an_identity_column() -> None:
    shelf = Shelf()
    make(shelf, T, "t", column("id"), column("g", identity="always", is_nullable=False))
    shelf.commit()
    error = refused("42601", lambda: alter(shelf.draft, shelf, T, DropNotNull("g")))
    assert str(error) == 'column "g" of relation "t" is an identity column'


def test_identity_is_changed_and_dropped(identity: Shelf) -> None:
    alter(identity.draft, identity, 501, SetIdentity("id", "by default"))
    assert table(identity, 501).columns[0].identity == "by default"
    drop_identity(identity.draft, identity, 501, "id")
    plain = table(identity, 501).columns[0]
    assert (plain.identity, plain.default, table(identity, 501).sequences) == ("", None, ())
    assert dropped(identity) == {500}
    error = refused("55000", lambda: alter(identity.draft, identity, 501, SetIdentity("z", "always")))
    assert str(error) == 'column "z" of relation "i" is not an identity column'


def test_identity_is_added_to_a_column_that_is_not_null(identity: Shelf) -> None:
    def add(name: str) -> object:
        return alter(identity.draft, identity, 501, AddIdentity(name, "always", next_of(FREE)))

    error = refused("55000", lambda: add("z"))
    assert str(error) == 'column "z" of relation "i" must be declared NOT NULL before identity can be added'
    error = refused("55000", lambda: add("id"))
    assert str(error) == 'column "id" of relation "i" is already an identity column'
    add("n")
    assert table(identity, 501).columns[2].identity == "always"
    assert stored(identity, FREE).dependents == (501,)


# ── generated ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def generated(shelf: Shelf) -> Shelf:
    """g(id, a, b generated from a)."""
    make(shelf, 500, "g", column("id"), column("a"), column("b", generated=reading(2)))
    shelf.commit()
    return shelf


def test_a_column_that_another_is_generated_from_is_in_use(generated: Shelf) -> None:
    error = refused("2BP01", lambda: drop_column(generated.draft, generated, 500, "a"))
    assert str(error) == "cannot drop column a of table g because other objects depend on it"
    assert error.detail == "column b of table g depends on column a of table g"
    refused("2BP01", lambda: alter(generated.draft, generated, 500, DropColumn("a")))
    drop_column(generated.draft, generated, 500, "a", is_cascade=True)
    generated.commit()
    generated.drain()
    assert [each.name for each in table(generated, 500).columns] == ["id"]


def test_it_keeps_its_type(generated: Shelf) -> None:
    error = refused("0A000", lambda: alter(generated.draft, generated, 500, AlterType("a", TEXT)))
    assert str(error) == "cannot alter type of a column used by a generated column"
    assert error.detail == 'Column "a" is used by generated column "b".'


def test_a_generated_column_has_no_default(generated: Shelf) -> None:
    error = refused("42601", lambda: alter(generated.draft, generated, 500, DropDefault("b")))
    assert str(error) == 'column "b" of relation "g" is a generated column'
    assert error.hint == "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."


def test_its_expression_is_dropped(generated: Shelf) -> None:
    alter(generated.draft, generated, 500, DropExpression("b"))
    assert table(generated, 500).columns[2].generated is None
    error = refused("55000", lambda: alter(generated.draft, generated, 500, DropExpression("a")))
    assert str(error) == 'column "a" of relation "g" is not a generated column'


def test_added_it_is_filled(shelf: Shelf) -> None:
    altered = alter(shelf.draft, shelf, T, AddColumn("g", INT, is_nullable=False, generated=reading(2)))
    added = altered.columns[-1]
    assert (added.generated, added.computed, added.is_nullable) == (reading(2), None, True)
