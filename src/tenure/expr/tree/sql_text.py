"""Expressions as SQL text, for people and for dumps: text that reads back as the same tree.

Implicit casts are left out, as reading the text makes them again; everything else that decides the
meaning is written, with brackets around every operator.

`postgres_text` writes them as PostgreSQL does instead, for its clients.

Walk: `sql` shows defaults, CHECKs and predicates with `render`, and writes CREATE statements.
"""

from collections.abc import Callable

from tenure.expr.tree.expressions import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Const,
    ContextValue,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    MakeArray,
    Nested,
    Node,
    Not,
    NullIf,
    Or,
    Quantified,
)
from tenure.expr.types.type_names import EnumLookup, type_of


def render(tree: Node, name_of: Callable[[int], str], enum: EnumLookup | None = None) -> str:
    """`name_of` gives a column's name as SQL writes it, in quotes where it needs them."""
    return SqlWriter(name_of, enum).write(tree)


class SqlWriter:
    def __init__(self, name_of: Callable[[int], str], enum: EnumLookup | None) -> None:
        self.name_of = name_of
        self.enum = enum

    def write(self, tree: Node) -> str:
        match tree:
            case Const():
                return self._const(tree)
            case ColumnRef():
                return self.name_of(tree.column)
            case ContextValue():
                return f"${tree.number + 1}"
            case Nested():
                return f"SUBQUERY {tree.number + 1}({self._list(tree.arguments)})"
            case Call():
                return self._call(tree)
            case Cast():
                return self._cast(tree)
            case And() | Or():
                word = " AND " if isinstance(tree, And) else " OR "
                return "(" + word.join([self.write(each) for each in tree.operands]) + ")"
            case Not():
                return f"(NOT {self.write(tree.operand)})"
            case IsNull() | IsTruth() | IsDistinct():
                return self._test(tree)
            case Case():
                return self._case(tree)
            case Coalesce():
                return f"COALESCE({self._list(tree.operands)})"
            case Extreme():
                return f"{'GREATEST' if tree.is_greatest else 'LEAST'}({self._list(tree.operands)})"
            case NullIf():
                return f"NULLIF({self.write(tree.result)}, {self.write(tree.right)})"
            case InList():
                word = "NOT IN" if tree.is_negated else "IN"
                return f"({self.write(tree.operand)} {word} ({self._list(tree.items)}))"
            case Quantified():
                word = "ALL" if tree.is_all else "ANY"
                sign = tree.function.partition("(")[0]
                return f"({self.write(tree.operand)} {sign} {word} ({self.write(tree.array)}))"
            case MakeArray():
                return f"ARRAY[{self._list(tree.elements)}]"

    def _const(self, tree: Const) -> str:
        kind = type_of(tree.type, self.enum)
        if tree.packed is None:
            return "NULL" if kind.family == "unknown" else f"NULL::{kind.sql_name}"
        text = kind.render(kind.unpack(tree.packed))
        if kind.family == "bool":
            return "true" if text == "t" else "false"
        if kind.family == "int4" and not text.startswith("-"):
            return text
        literal = "'" + text.replace("'", "''") + "'"
        return literal if kind.family == "unknown" else f"{literal}::{kind.sql_name}"

    def _call(self, tree: Call) -> str:
        name = tree.function.partition("(")[0]
        if name[0].isalpha():
            return f"{name}({self._list(tree.arguments)})"
        if len(tree.arguments) == 1:
            return f"({name} {self.write(tree.arguments[0])})"
        left, right = tree.arguments
        return f"({self.write(left)} {name} {self.write(right)})"

    def _cast(self, tree: Cast) -> str:
        if tree.context == "implicit":
            return self.write(tree.operand)
        return f"({self.write(tree.operand)})::{type_of(tree.type, self.enum).sql_name}"

    def _test(self, tree: IsNull | IsTruth | IsDistinct) -> str:
        word = "IS NOT" if tree.is_negated else "IS"
        if isinstance(tree, IsDistinct):
            return f"({self.write(tree.left)} {word} DISTINCT FROM {self.write(tree.right)})"
        if isinstance(tree, IsNull):
            return f"({self.write(tree.operand)} {word} NULL)"
        truth = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}[tree.truth]
        return f"({self.write(tree.operand)} {word} {truth})"

    def _case(self, tree: Case) -> str:
        branches = [f"WHEN {self.write(when)} THEN {self.write(then)}" for when, then in tree.branches]
        otherwise = "" if tree.otherwise is None else f" ELSE {self.write(tree.otherwise)}"
        return f"CASE {' '.join(branches)}{otherwise} END"

    def _list(self, trees: tuple[Node, ...]) -> str:
        return ", ".join([self.write(each) for each in trees])
