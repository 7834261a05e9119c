"""The options of a sequence: START, INCREMENT, MINVALUE, MAXVALUE, CACHE, CYCLE, AS, RESTART.

Walk: CREATE and ALTER SEQUENCE, and identity columns -> `options_of`.
"""

from collections.abc import Sequence
from typing import Any

from tenure.base.errors import NotSupported, SyntaxFault
from tenure.catalog.changes.sequence_changes import SequenceOptions
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.type_names import type_of
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.text.parse import Tree, child, items, kind

INT8 = type_of(TypeRef("int8"))
NUMBERS = {"start": "start", "increment": "increment", "cache": "cache"}
BOUNDS = {"minvalue": ("minimum", "has_no_minimum"), "maxvalue": ("maximum", "has_no_maximum")}
ELSEWHERE = ("owned_by", "sequence_name", "restart", "logged", "generated")
"""Options that are not properties of the sequence: other functions read them."""


def options_of(definer: Definer, nodes: Sequence[Tree], type: TypeRef | None = None) -> SequenceOptions:
    found: dict[str, Any] = {"type": type}
    seen: set[str] = set()
    for each in items(nodes):
        if each.defname in seen:
            raise SyntaxFault("conflicting or redundant options", position=each.location + 1)
        seen.add(each.defname)
        value = child(each, "arg")
        match each.defname:
            case name if name in NUMBERS:
                found[NUMBERS[name]] = whole(value)
            case name if name in BOUNDS:
                bound, none = BOUNDS[name]
                found |= {none: True} if value is None else {bound: whole(value)}
            case "cycle":
                found["is_cycle"] = bool(value.boolval) if kind(value) == "Boolean" else True
            case "as":
                found["type"] = definer.type_ref(value)
            case name if name in ELSEWHERE:
                pass
            case other:
                raise NotSupported(f"sequence option {other} is not supported")
    return SequenceOptions(**found)


def restart_of(nodes: Sequence[Tree]) -> tuple[bool, int | None]:
    """Whether the sequence restarts, and the value; None: its start value."""
    for each in items(nodes):
        if each.defname == "restart":
            value = child(each, "arg")
            return True, None if value is None else whole(value)
    return False, None


def whole(value: Tree) -> int:
    """A number, which PostgreSQL's grammar gives as Integer or, if it is large, as Float.

    Raises OutOfRange (22003) or InvalidText (22P02) for one that is no bigint.
    """
    if kind(value) == "A_Const":
        value = getattr(value, value.WhichOneof("val"))
    return int(value.ival) if kind(value) == "Integer" else INT8.parse(value.fval)
