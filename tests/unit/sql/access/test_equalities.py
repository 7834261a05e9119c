"""Conditions that follow from equal columns, and joins that need no padding."""

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.expressions import Call, ColumnRef, Const, InList, Node
from tenure.sql.access.equalities import follows

INT = TypeRef("int4")


def _equal(left: Node, right: Node, families: str = "int4,int4") -> Call:
    return Call(f"=({families})", (left, right))


def test_a_value_reaches_all_columns_that_are_equal() -> None:
    fixed = _equal(ColumnRef(0), Const(INT, 5))
    pairs = [_equal(ColumnRef(0), ColumnRef(3)), _equal(ColumnRef(4), ColumnRef(3))]
    assert follows([fixed, *pairs]) == [_equal(ColumnRef(each), Const(INT, 5)) for each in (3, 4)]


def test_a_list_reaches_an_equal_column() -> None:
    listed = InList("=(int4,int4)", ColumnRef(1), (Const(INT, 1), Const(INT, 2)))
    found = follows([listed, _equal(ColumnRef(1), ColumnRef(2))])
    assert found == [InList("=(int4,int4)", ColumnRef(2), listed.items)]


def test_equalities_of_different_types_and_conditions_that_are_there_add_nothing() -> None:
    fixed = _equal(ColumnRef(0), Const(INT, 5))
    mixed = _equal(ColumnRef(0), ColumnRef(3), "int4,int8")
    assert follows([fixed, mixed]) == []
    pair, known = _equal(ColumnRef(0), ColumnRef(3)), _equal(ColumnRef(3), Const(INT, 5))
    assert follows([fixed, pair, known]) == []
    assert follows([fixed]) == []
