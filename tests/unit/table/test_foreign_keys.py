"""Foreign keys: existence, actions, cycles, states."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import ForeignKeyViolation, NotNullViolation, RestrictViolation, RetryError
from tenure.catalog.descriptors.definitions import Action, ElementState, ForeignKey, Inbound, Index, Table
from tenure.expr.types.datatype import Datum
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.table.tables import (
    DELETE_ONLY,
    ID,
    PUBLIC,
    WRITE_ONLY,
    A,
    B,
    Bench,
    column,
    found,
    index,
    table,
)
from tests.unit.table.trees import constant

PARENT, CHILD, TREE = 201, 202, 203
ACTING = [Action.CASCADE, Action.SET_NULL, Action.SET_DEFAULT]


def test_a_row_must_refer_to_one_that_is_there(store: Store) -> None:
    bench = _family(store)
    bench.insert(1, id=PARENT)
    bench.insert(1, 1, id=CHILD)
    bench.insert(2, None, id=CHILD)
    with pytest.raises(ForeignKeyViolation) as raised:
        bench.insert(3, 9, id=CHILD)
    error = raised.value
    assert str(error) == 'insert or update on table "child" violates foreign key constraint "child_a_fkey"'
    assert (error.sqlstate, error.detail) == ("23503", 'Key (a)=(9) is not present in table "parent".')
    assert (error.table, error.constraint) == ("child", "child_a_fkey")
    with pytest.raises(ForeignKeyViolation):
        bench.update(2, {A: 9}, id=CHILD)


def test_a_row_that_is_referred_to_cannot_go(store: Store) -> None:
    bench = _family(store)
    bench.insert(1, id=PARENT)
    bench.insert(1, 1, id=CHILD)
    for write in (lambda: bench.delete(1, id=PARENT), lambda: bench.update(1, {ID: 2}, id=PARENT)):
        with pytest.raises(ForeignKeyViolation) as raised:
            write()
        error = raised.value
        assert str(error) == (
            'update or delete on table "parent" violates foreign key constraint "child_a_fkey" '
            'on table "child"'
        )
        assert (error.sqlstate, error.detail) == (
            "23503",
            'Key (id)=(1) is still referenced from table "child".',
        )
        assert error.table == "child"
    bench.update(1, {A: 3}, id=PARENT)
    bench.delete(1, id=CHILD)
    bench.delete(1, id=PARENT)


def test_restrict_has_words_of_its_own(store: Store) -> None:
    bench = _family(store, Action.RESTRICT)
    bench.insert(1, id=PARENT)
    bench.insert(1, 1, id=CHILD)
    with pytest.raises(RestrictViolation) as raised:
        bench.delete(1, id=PARENT)
    assert str(raised.value) == (
        'update or delete on table "parent" violates RESTRICT setting of foreign key constraint '
        '"child_a_fkey" on table "child"'
    )
    assert raised.value.detail == 'Key (id)=(1) is referenced from table "child".'
    assert raised.value.sqlstate == "23001"


@pytest.mark.parametrize(("action", "is_allowed"), [(Action.NO_ACTION, True), (Action.RESTRICT, False)])
def test_no_action_lets_another_row_take_the_key_before_the_statement_ends(
    store: Store, action: Action, is_allowed: bool
) -> None:
    bench = _family(store, action)
    bench.insert(1, id=PARENT)
    bench.insert(1, 1, id=CHILD)
    writer = bench.writer(PARENT)

    def swap(txn: Transaction) -> None:
        writer.delete(txn, found(txn, writer.layout, 1))
        writer.insert(txn, {ID: 1, A: 7})

    if is_allowed:
        bench.statement(writer, swap)
        assert bench.rows(PARENT) == [(1, 7, None)]
    else:
        with pytest.raises(RestrictViolation):
            bench.statement(writer, swap)


@pytest.mark.parametrize("indexes", [(), (index(2, "child_a", A),)])
@pytest.mark.parametrize("action", ACTING)
def test_actions_on_delete(store: Store, action: Action, indexes: tuple[Index, ...]) -> None:
    bench = _family(store, action, *indexes)
    _insert_all(bench, PARENT, (1,), (2,), (77,))
    _insert_all(bench, CHILD, (1, 1), (2, 2), (3, 1))
    bench.delete(1, id=PARENT)
    after = {
        Action.CASCADE: [(2, 2, None)],
        Action.SET_NULL: [(1, None, None), (2, 2, None), (3, None, None)],
        Action.SET_DEFAULT: [(1, 77, None), (2, 2, None), (3, 77, None)],
    }
    assert bench.rows(CHILD) == after[action]
    assert bench.wrong(id=CHILD) == []


@pytest.mark.parametrize("action", ACTING)
def test_actions_on_update(store: Store, action: Action) -> None:
    bench = _family(store, action, index(2, "child_a", A))
    _insert_all(bench, PARENT, (1,), (2,), (77,))
    _insert_all(bench, CHILD, (1, 1), (2, 2))
    bench.update(1, {ID: 5}, id=PARENT)
    assert (
        bench.rows(CHILD)[0][1] == {Action.CASCADE: 5, Action.SET_NULL: None, Action.SET_DEFAULT: 77}[action]
    )
    assert bench.rows(CHILD)[1] == (2, 2, None)


def test_a_default_that_is_set_must_be_there(store: Store) -> None:
    bench = _family(store, Action.SET_DEFAULT)
    bench.insert(1, id=PARENT)
    bench.insert(1, 1, id=CHILD)
    with pytest.raises(ForeignKeyViolation, match="insert or update"):
        bench.delete(1, id=PARENT)


@pytest.mark.invariant("foreign-keys")
def test_a_default_that_is_set_may_be_the_key_that_is_gone(store: Store) -> None:
    bench = _family(store, Action.SET_DEFAULT)
    bench.insert(77, id=PARENT)
    bench.insert(1, 77, id=CHILD)
    with pytest.raises(ForeignKeyViolation, match="update or delete"):
        bench.delete(77, id=PARENT)
    with pytest.raises(ForeignKeyViolation, match="update or delete"):
        bench.update(77, {ID: 78}, id=PARENT)


@pytest.mark.parametrize("former", [Action.CASCADE, Action.RESTRICT])
def test_foreign_keys_act_in_the_order_in_which_they_were_declared(store: Store, former: Action) -> None:
    later = Action.RESTRICT if former is Action.CASCADE else Action.CASCADE
    keys = [
        ForeignKey(1, "first", (A,), PARENT, (ID,), former),
        ForeignKey(2, "second", (B,), PARENT, (ID,), later),
    ]
    parent = table(id=PARENT, name="parent", inbound=[Inbound(CHILD, 1), Inbound(CHILD, 2)])
    bench = Bench(store, parent, table(id=CHILD, name="child", foreign_keys=keys))
    bench.insert(1, id=PARENT)
    bench.insert(1, 1, 1, id=CHILD)
    if former is Action.CASCADE:
        bench.delete(1, id=PARENT)
        assert bench.rows(CHILD) == []
    else:
        with pytest.raises(RestrictViolation):
            bench.delete(1, id=PARENT)


def test_setting_null_obeys_not_null(store: Store) -> None:
    bench = _family(store, Action.SET_NULL, is_nullable=False)
    bench.insert(1, id=PARENT)
    bench.insert(1, 1, id=CHILD)
    with pytest.raises(NotNullViolation):
        bench.delete(1, id=PARENT)


@pytest.mark.invariant("foreign-keys")
def test_a_long_chain_of_references_to_itself_is_deleted_from_its_root(store: Store) -> None:
    bench = Bench(store, _tree(Action.CASCADE, index(2, "tree_a", A)))
    count = 1_500
    writer = bench.writer(TREE)

    def build(txn: Transaction) -> None:
        for id in range(1, count + 1):
            writer.insert(txn, {ID: id, A: id - 1 or None})

    bench.statement(writer, build)
    bench.delete(1, id=TREE)
    assert bench.rows(TREE) == []
    assert bench.wrong(id=TREE) == []


@pytest.mark.invariant("foreign-keys")
@pytest.mark.parametrize("action", [Action.CASCADE, Action.SET_NULL, Action.NO_ACTION])
def test_rows_may_refer_to_each_other_in_a_cycle(store: Store, action: Action) -> None:
    bench = Bench(store, _tree(action))
    writer = bench.writer(TREE)

    def build(txn: Transaction) -> None:
        for id, refers_to in [(1, 3), (2, 1), (3, 2), (4, 4)]:
            writer.insert(txn, {ID: id, A: refers_to})

    bench.statement(writer, build)
    bench.delete(4, id=TREE)
    if action is Action.NO_ACTION:
        with pytest.raises(ForeignKeyViolation):
            bench.delete(1, id=TREE)
    else:
        bench.delete(1, id=TREE)
    left = {
        Action.CASCADE: [],
        Action.SET_NULL: [(2, None, None), (3, 2, None)],
        Action.NO_ACTION: [(1, 3, None), (2, 1, None), (3, 2, None)],
    }
    assert bench.rows(TREE) == left[action]


def test_a_statement_may_delete_rows_together_that_refer_to_each_other(store: Store) -> None:
    bench = Bench(store, _tree(Action.NO_ACTION))
    _insert_all(bench, TREE, (1, None), (2, 1))
    writer = bench.writer(TREE)

    def clear(txn: Transaction) -> None:
        for key in (1, 2):
            writer.delete(txn, found(txn, writer.layout, key))

    bench.statement(writer, clear)
    assert bench.rows(TREE) == []


def test_several_columns_refer_to_a_unique_index_in_any_order(store: Store) -> None:
    foreign_key = ForeignKey(1, "child_fkey", (A, B), PARENT, (B, A))
    parent = table(
        index(2, "parent_key", A, B, unique=True), id=PARENT, name="parent", inbound=[Inbound(CHILD, 1)]
    )
    bench = Bench(store, parent, table(id=CHILD, name="child", foreign_keys=[foreign_key]))
    bench.insert(1, 10, 20, id=PARENT)
    bench.insert(1, 20, 10, id=CHILD)
    bench.insert(2, 99, None, id=CHILD)
    with pytest.raises(ForeignKeyViolation) as raised:
        bench.insert(3, 10, 20, id=CHILD)
    assert raised.value.detail == 'Key (a, b)=(10, 20) is not present in table "parent".'
    with pytest.raises(ForeignKeyViolation):
        bench.delete(1, id=PARENT)


@pytest.mark.parametrize(("state", "is_enforced"), [(DELETE_ONLY, False), (WRITE_ONLY, True), (PUBLIC, True)])
def test_a_foreign_key_is_enforced_from_write_only_on(
    store: Store, state: ElementState, is_enforced: bool
) -> None:
    bench = _family(store, state=state)
    bench.insert(1, id=PARENT)
    bench.insert(1, 1, id=CHILD)
    if is_enforced:
        with pytest.raises(ForeignKeyViolation):
            bench.insert(2, 9, id=CHILD)
        with pytest.raises(ForeignKeyViolation):
            bench.delete(1, id=PARENT)
    else:
        bench.insert(2, 9, id=CHILD)
        bench.delete(1, id=PARENT)


def test_a_reference_that_races_with_its_targets_deletion_conflicts(store: Store) -> None:
    bench = _family(store)
    bench.insert(1, id=PARENT)
    parents, children = bench.writer(PARENT), bench.writer(CHILD)
    deleting, inserting = store.begin(), store.begin()
    children.insert(inserting, {ID: 1, A: 1})
    children.finish(inserting)
    parents.delete(deleting, found(deleting, parents.layout, 1))
    parents.finish(deleting)
    inserting.commit()
    with pytest.raises(RetryError):
        deleting.commit()


def test_what_the_rows_of_a_statement_refer_to_is_read_together_and_once(env: ManualEnv) -> None:
    engine = BreakingEngine(SqliteEngine(MEMORY, env))
    bench = _family(Store(engine, env))
    for parent in range(3):
        bench.insert(parent, id=PARENT)
    engine.gets.clear()
    engine.lookups = 0
    _insert_together(bench, [(child, child % 3) for child in range(30)])
    parents = [bench.layout(PARENT).key({ID: parent}) for parent in range(3)]
    assert [key for key in engine.gets if key in parents] == parents
    assert engine.lookups == 2, "one for the rows' own keys, one for those they refer to"
    engine.close()


def test_of_rows_that_refer_to_nothing_the_first_is_told(store: Store) -> None:
    bench = _family(store)
    bench.insert(1, id=PARENT)
    with pytest.raises(ForeignKeyViolation) as raised:
        _insert_together(bench, [(1, 1), (2, None), (3, 9), (4, 8), (5, 1)])
    assert raised.value.detail == 'Key (a)=(9) is not present in table "parent".'
    assert bench.rows(CHILD) == []


def test_a_row_that_is_looked_up_by_an_index_of_its_own_may_change_until_the_commit(store: Store) -> None:
    foreign_key = ForeignKey(1, "child_a_fkey", (A,), PARENT, (A,))
    parent = table(
        index(2, "parent_a_key", A, unique=True), id=PARENT, name="parent", inbound=[Inbound(CHILD, 1)]
    )
    bench = Bench(store, parent, table(id=CHILD, name="child", foreign_keys=[foreign_key]))
    bench.insert(1, 7, 0, id=PARENT)
    txn, writer = store.begin(), bench.writer(CHILD)
    writer.insert(txn, {ID: 1, A: 7, B: None})
    writer.finish(txn)
    bench.update(1, {B: 5}, id=PARENT)
    txn.commit()
    txn = store.begin()
    writer.insert(txn, {ID: 2, A: 7, B: None})
    writer.finish(txn)
    bench.delete(1, id=CHILD)
    bench.delete(1, id=PARENT)
    with pytest.raises(RetryError):
        txn.commit()


def _insert_together(bench: Bench, rows: list[tuple[Datum, ...]]) -> None:
    writer = bench.writer(CHILD)
    named = [dict(zip(writer.layout.public, row, strict=False)) for row in rows]
    bench.statement(writer, lambda txn: list(writer.insert_all(txn, named)))


def _family(
    store: Store,
    action: Action = Action.NO_ACTION,
    *indexes: Index,
    state: ElementState = PUBLIC,
    is_nullable: bool = True,
) -> Bench:
    foreign_key = ForeignKey(1, "child_a_fkey", (A,), PARENT, (ID,), action, action, state)
    columns = (
        column(ID, "id", is_nullable=False),
        column(A, "a", default=constant(77), is_nullable=is_nullable),
        column(B, "b"),
    )
    return Bench(
        store,
        table(id=PARENT, name="parent", inbound=[Inbound(CHILD, 1)]),
        table(*indexes, id=CHILD, name="child", columns=columns, foreign_keys=[foreign_key]),
    )


def _tree(action: Action, *indexes: Index) -> Table:
    """A table whose rows refer to others of their own."""
    foreign_key = ForeignKey(1, "tree_a_fkey", (A,), TREE, (ID,), action, action)
    return table(*indexes, id=TREE, name="tree", foreign_keys=[foreign_key], inbound=[Inbound(TREE, 1)])


def _insert_all(bench: Bench, id: int, *rows: tuple[Datum, ...]) -> None:
    for row in rows:
        bench.insert(*row, id=id)
