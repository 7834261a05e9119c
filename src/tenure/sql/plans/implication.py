"""Whether one condition implies another, by simple rules.

    b >= 1 AND c = 'x'      implies     b > 0, b IS NOT NULL
    b IN (1, 2)             implies     b > 0, b IN (1, 2, 3)
    b > 0 OR b IS NULL      does not    b > 0

Each conjunct of the implied condition occurs in the other one, or is weaker than a comparison there of the
same expression with a constant. Other implications are not found.

Walk: `statements.dml.on_conflict` asks which partial indexes a conflict target covers.
"""

from tenure.expr.function_table import function_with_id
from tenure.expr.tree.expressions import Call, Const, InList, IsNull, Node, Or
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.type_names import EnumLookup, type_of
from tenure.sql.plans.trees import Comparison, compares_as_is, comparison, conjuncts

_LIST_ITEMS_MAX = 100
"""As in PostgreSQL: two lists cost the product of their lengths, so longer ones are taken as written."""


def implies(condition: Node | None, wanted: Node, enum: EnumLookup | None = None) -> bool:
    """Whether every row for which the condition is true is one for which `wanted` is."""
    premises = [_spelled_out(each) for each in conjuncts(condition)]
    parts = [_spelled_out(each) for each in conjuncts(wanted)]
    return all(any(_follows(part, premise, enum) for premise in premises) for part in parts)


def _follows(wanted: Node, premise: Node, enum: EnumLookup | None) -> bool:
    if wanted == premise:
        return True
    if isinstance(premise, Or):
        return all(implies(each, wanted, enum) for each in premise.operands)
    if isinstance(wanted, Or):
        return any(implies(premise, each, enum) for each in wanted.operands)
    stronger = _with_constant(premise)
    if stronger is None:
        return False
    if isinstance(wanted, IsNull):
        return wanted.is_negated and wanted.operand == stronger.left
    implied = _with_constant(wanted)
    return implied is not None and implied.left == stronger.left and _is_weaker(implied, stronger, enum)


def _spelled_out(tree: Node) -> Node:
    """x IN (a, b) is x = a OR x = b."""
    if not isinstance(tree, InList) or tree.is_negated or len(tree.items) > _LIST_ITEMS_MAX:
        return tree
    equalities = tuple(Call(tree.equality, (tree.operand, item)) for item in tree.items)
    return equalities[0] if len(equalities) == 1 else Or(equalities)


def _with_constant(tree: Node) -> Comparison | None:
    """A comparison of something with a constant, which stands on the right."""
    found = comparison(tree)
    if found is None or not compares_as_is(found.families):
        return None
    for each in (found, found.turned):
        if isinstance(each.right, Const) and each.right.packed is not None:
            return each
    return None


_IMPLIED = {
    ("=", "="): "=",
    ("=", "<"): "<",
    ("=", "<="): "<=",
    ("=", ">"): ">",
    ("=", ">="): ">=",
    ("<", "<"): "<=",
    ("<", "<="): "<=",
    ("<=", "<"): "<",
    ("<=", "<="): "<=",
    (">", ">"): ">=",
    (">", ">="): ">=",
    (">=", ">"): ">",
    (">=", ">="): ">=",
}
"""x <stronger> a implies x <implied> b if a <this> b."""


def _is_weaker(implied: Comparison, stronger: Comparison, enum: EnumLookup | None) -> bool:
    sign = _IMPLIED.get((stronger.sign, implied.sign))
    if sign is None:
        return False
    function = function_with_id(f"{sign}({stronger.families[1]},{implied.families[1]})")
    (first, value), (second, other) = (_constant(each.right, enum) for each in (stronger, implied))
    compare = function.run(first, second) if function.wants_types else function.run
    return compare(value, other) is True


def _constant(node: Node, enum: EnumLookup | None) -> tuple[Type, Datum]:
    assert isinstance(node, Const)
    kind = type_of(node.type, enum)
    return kind, kind.unpack(node.packed)
