"""Expressions as PostgreSQL's pg_get_expr writes them, for clients that read the catalog.

    (price > (0)::numeric)        price > 0::numeric        the second one pretty: without needless brackets

Other than `sql_text`, it writes implicit casts too, as PostgreSQL does. A constant that was converted to its
type when it was bound is written as a cast of the integer, which is how people mostly write it.

Walk: `sql.tables.pg_catalog.definition_text` shows defaults, CHECKs and predicates with `postgres_text`.
"""

from collections.abc import Callable

from tenure.expr.tree.expressions import (
    And,
    Call,
    Case,
    Cast,
    Const,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    Node,
    Not,
    Or,
    Quantified,
)
from tenure.expr.tree.sql_text import SqlWriter
from tenure.expr.types.casts import bare
from tenure.expr.types.type_names import EnumLookup, type_of


def postgres_text(
    tree: Node, name_of: Callable[[int], str], enum: EnumLookup | None = None, *, is_pretty: bool = False
) -> str:
    return _PostgresWriter(name_of, enum, is_pretty).write(tree)


_WITHOUT_BRACKETS = (
    *("current_timestamp", "current_date", "current_time", "localtimestamp", "localtime"),
    *("current_user", "current_role", "session_user", "user", "current_catalog", "current_schema"),
)
_SUMS, _PRODUCTS = ("+", "-"), ("*", "/", "%")
_TRUTHS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


class _PostgresWriter(SqlWriter):
    def __init__(self, name_of: Callable[[int], str], enum: EnumLookup | None, is_pretty: bool) -> None:
        super().__init__(name_of, enum)
        self._is_pretty = is_pretty

    def write(self, tree: Node) -> str:
        match tree:
            case And() | Or():
                word = " AND " if isinstance(tree, And) else " OR "
                return self._whole(word.join([self._part(each, tree) for each in tree.operands]))
            case Not():
                return self._whole(f"NOT {self._part(tree.operand, tree)}")
            case InList():
                return self._in_list(tree)
            case Quantified():
                sign, word = tree.function.partition("(")[0], "ALL" if tree.is_all else "ANY"
                array = self.write(tree.array)
                return self._whole(f"{self._part(tree.operand, tree)} {sign} {word} ({array})")
        return super().write(tree)

    def _whole(self, text: str) -> str:
        return text if self._is_pretty else f"({text})"

    def _part(self, part: Node, of: Node, *, is_first: bool = True) -> str:
        """An operand, in brackets where a pretty text needs them."""
        text = self.write(part)
        return f"({text})" if self._is_pretty and not _is_simple(part, of, is_first) else text

    def _const(self, tree: Const) -> str:
        kind = type_of(tree.type, self.enum)
        if tree.packed is None or kind.family in ("bool", "int4", "unknown"):
            return super()._const(tree)
        text = kind.render(kind.unpack(tree.packed))
        if kind.family in ("numeric", "float4", "float8") and text.isdecimal():
            return f"{text if self._is_pretty else f'({text})'}::{kind.sql_name}"
        if kind.family == "numeric" and text.replace(".", "", 1).isdecimal():
            return text
        name = (
            "bpchar" if kind.family == "char" else bare(kind).sql_name if not kind.ref.enum else kind.sql_name
        )
        literal = (text.rstrip(" ") if kind.family == "char" else text).replace("'", "''")
        return f"'{literal}'::{name}"

    def _call(self, tree: Call) -> str:
        name = tree.function.partition("(")[0]
        if name[0].isalpha():
            is_word = name in _WITHOUT_BRACKETS and not tree.arguments
            return name.upper() if is_word else f"{name}({self._list(tree.arguments)})"
        if len(tree.arguments) == 1:
            return self._whole(f"{name} {self._part(tree.arguments[0], tree)}")
        left, right = tree.arguments
        return self._whole(f"{self._part(left, tree)} {name} {self._part(right, tree, is_first=False)}")

    def _cast(self, tree: Cast) -> str:
        name = type_of(tree.type, self.enum).sql_name
        if self._is_pretty:
            return f"{self._part(tree.operand, tree)}::{name}"
        return f"({self.write(tree.operand)})::{name}"

    def _test(self, tree: IsNull | IsTruth | IsDistinct) -> str:
        word = "IS NOT" if tree.is_negated else "IS"
        if isinstance(tree, IsDistinct):
            right = self._part(tree.right, tree)
            return self._whole(f"{self._part(tree.left, tree)} {word} DISTINCT FROM {right}")
        truth = "NULL" if isinstance(tree, IsNull) else _TRUTHS[tree.truth]
        return self._whole(f"{self._part(tree.operand, tree)} {word} {truth}")

    def _in_list(self, tree: InList) -> str:
        """PostgreSQL keeps IN as a comparison with an array."""
        items, operand = self._list(tree.items), self._part(tree.operand, tree)
        comparison = "<> ALL" if tree.is_negated else "= ANY"
        return self._whole(f"{operand} {comparison} (ARRAY[{items}])")

    def _case(self, tree: Case) -> str:
        lines = [f"    WHEN {self.write(when)} THEN {self.write(then)}" for when, then in tree.branches]
        if tree.otherwise is not None:
            lines.append(f"    ELSE {self.write(tree.otherwise)}")
        return "\n".join(["\nCASE", *lines, "END"])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_simple(part: Node, of: Node, is_first: bool) -> bool:
    """Whether PostgreSQL writes an operand without brackets in a pretty text."""
    match part:
        case Call() if not part.function[0].isalpha():
            return isinstance(of, And | Or | Not) or _binds_stronger(part, of, is_first)
        case And() | Not():
            return isinstance(of, And | Or)
        case Or():
            return isinstance(of, Or)
        case InList() | Quantified() | IsNull() | IsTruth() | IsDistinct():
            return isinstance(of, And | Or | Not)
    return True


def _binds_stronger(part: Call, of: Node, is_first: bool) -> bool:
    if not isinstance(of, Call) or len(part.arguments) != 2:
        return False
    inner, outer = part.function.partition("(")[0], of.function.partition("(")[0]
    if inner in _PRODUCTS:
        return outer in _SUMS or (outer in _PRODUCTS and is_first)
    return inner in _SUMS and outer in _SUMS and is_first
