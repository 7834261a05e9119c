"""Typed expressions as data: trees of frozen nodes, stored in descriptors as bytes.

    price > 0 AND lower(name) <> ''

    And(Call(">(numeric,numeric)", ColumnRef(3), Const(numeric, 0)),
        Call("<>(text,text)", Call("lower(text)", ColumnRef(2)), Const(text, "")))

Everything is resolved before it gets here: columns by id, functions by an id that names their
argument types, casts written out. So a stored tree means the same after anything is renamed or added
later. `expr.tree.build` makes trees with overloads and casts resolved, `expr.tree.compiled` runs them,
`expr.tree.sql_text` writes them as SQL.

    stored = format number (one byte) + the tree in MessagePack

Invariant (tree-exact): decode(encode(tree)) == tree.

Walk: `sql.bind.binder` makes trees; DDL puts what `to_stored` gives into descriptors; `table` compiles them.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from tenure.base.errors import CorruptData, NewerFormat
from tenure.catalog.descriptors.definitions import Expression, TypeRef
from tenure.kv.records import Record

FORMAT = 1

SEQUENCE_CALLS = frozenset(
    (
        "tenure_nextval(int8)",
        "tenure_currval(int8)",
        "tenure_setval(int8,int8)",
        "tenure_setval(int8,int8,bool)",
    )
)
"""The functions of `expr.functions.sequence_functions` whose first argument is a sequence's id."""


class ExpressionNode(Record, frozen=True, tag_field="node"):
    """The base of all nodes: each has a tag, which is stored and never changes."""


class Const(ExpressionNode, frozen=True, tag="const"):
    """A value as its type packs it; None is NULL."""

    type: TypeRef
    packed: Any


class ColumnRef(ExpressionNode, frozen=True, tag="column"):
    column: int


class Call(ExpressionNode, frozen=True, tag="call"):
    """A function or an operator by its id in `expr.function_table`; the arguments have its very types."""

    function: str
    arguments: tuple["Node", ...]


class Cast(ExpressionNode, frozen=True, tag="cast"):
    """`context` is explicit, assignment or implicit: an explicit cast cuts what is too long."""

    operand: "Node"
    type: TypeRef
    context: str


class And(ExpressionNode, frozen=True, tag="and"):
    operands: tuple["Node", ...]


class Or(ExpressionNode, frozen=True, tag="or"):
    operands: tuple["Node", ...]


class Not(ExpressionNode, frozen=True, tag="not"):
    operand: "Node"


class IsNull(ExpressionNode, frozen=True, tag="null"):
    operand: "Node"
    is_negated: bool = False


class IsTruth(ExpressionNode, frozen=True, tag="truth"):
    """IS [NOT] TRUE, FALSE, or UNKNOWN (None)."""

    operand: "Node"
    truth: bool | None
    is_negated: bool = False


class IsDistinct(ExpressionNode, frozen=True, tag="distinct"):
    """IS [NOT] DISTINCT FROM, by the equality named."""

    equality: str
    left: "Node"
    right: "Node"
    is_negated: bool = False


class Case(ExpressionNode, frozen=True, tag="case"):
    branches: tuple[tuple["Node", "Node"], ...]
    otherwise: "Node | None" = None


class Coalesce(ExpressionNode, frozen=True, tag="coalesce"):
    operands: tuple["Node", ...]


class NullIf(ExpressionNode, frozen=True, tag="nullif"):
    equality: str
    left: "Node"
    right: "Node"
    result: "Node"
    """The left side before it was cast for the comparison."""


class Extreme(ExpressionNode, frozen=True, tag="extreme"):
    """GREATEST and LEAST, which pass over NULLs."""

    operands: tuple["Node", ...]
    is_greatest: bool


class InList(ExpressionNode, frozen=True, tag="in"):
    equality: str
    operand: "Node"
    items: tuple["Node", ...]
    is_negated: bool = False


class Quantified(ExpressionNode, frozen=True, tag="any"):
    """operand op ANY (array), or ALL."""

    function: str
    operand: "Node"
    array: "Node"
    is_all: bool = False


class MakeArray(ExpressionNode, frozen=True, tag="array"):
    type: TypeRef
    elements: tuple["Node", ...]


class ContextValue(ExpressionNode, frozen=True, tag="given"):
    """A value that comes with the Context: a statement's parameter, or a value of an outer row."""

    number: int
    type: TypeRef


class Nested(ExpressionNode, frozen=True, tag="nested"):
    """A question that the Context answers: a subquery, given its operand and its outer values."""

    number: int
    arguments: tuple["Node", ...]
    type: TypeRef


Node: TypeAlias = (
    Const
    | ContextValue
    | Nested
    | ColumnRef
    | Call
    | Cast
    | And
    | Or
    | Not
    | IsNull
    | IsTruth
    | IsDistinct
    | Case
    | Coalesce
    | NullIf
    | Extreme
    | InList
    | Quantified
    | MakeArray
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Node).decode


def encode(tree: Node) -> bytes:
    return FORMAT.to_bytes(1, "big") + _encode(tree)


def decode(data: bytes) -> Node:
    if data[:1] and data[0] > FORMAT:
        raise NewerFormat(f"an expression has format {data[0]}; this version reads {FORMAT}")
    try:
        tree: Node = _decode(memoryview(data)[1:])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CorruptData(f"an expression cannot be read: {error}") from error
    return tree


def to_stored(tree: Node, text: str) -> Expression:
    """The stored form for a descriptor; `text` is the expression in SQL."""
    found = (columns(tree), sequences(tree), enums(tree))
    return Expression(encode(tree), text, *(tuple(sorted(each)) for each in found))


def columns(tree: Node) -> set[int]:
    """The ids of the columns it reads."""
    return {node.column for node in nodes(tree) if isinstance(node, ColumnRef)}


def sequences(tree: Node) -> set[int]:
    """The ids of the sequences it calls for values."""
    calls = [node for node in nodes(tree) if isinstance(node, Call) and node.function in SEQUENCE_CALLS]
    named = [call.arguments[0] for call in calls]
    return {each.packed for each in named if isinstance(each, Const)}


def enums(tree: Node) -> set[int]:
    """The ids of the enums it names."""
    typed = (node for node in nodes(tree) if isinstance(node, Const | Cast | MakeArray))
    return {node.type.enum for node in typed if node.type.enum}


def nodes(tree: Node) -> Iterator[Node]:
    yield tree
    for child in children(tree):
        yield from nodes(child)


def children(tree: Node) -> tuple[Node, ...]:
    match tree:
        case Const() | ColumnRef() | ContextValue():
            return ()
        case Call() | Nested():
            return tree.arguments
        case Cast() | Not() | IsNull() | IsTruth():
            return (tree.operand,)
        case And() | Or() | Coalesce() | Extreme():
            return tree.operands
        case IsDistinct():
            return tree.left, tree.right
        case NullIf():
            return tree.left, tree.right, tree.result
        case Case():
            inner = [each for branch in tree.branches for each in branch]
            return (*inner, *((tree.otherwise,) if tree.otherwise is not None else ()))
        case InList():
            return tree.operand, *tree.items
        case Quantified():
            return tree.operand, tree.array
        case MakeArray():
            return tree.elements
