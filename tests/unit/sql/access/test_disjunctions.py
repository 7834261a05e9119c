"""An OR of ANDs gives a join its equality, and each side what it can know alone."""

from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.plans.plan import Join, JoinKind, Plan, Scan, walk
from tenure.sql.plans.trees import conjuncts, equated
from tenure.sql.text.parse import one
from tests.unit.sql.schema import KnownNames

ALTERNATIVES = (
    "(people.id = orders.person AND age = 30 AND amount > 5 AND note = 'x')"
    " OR (people.id = orders.person AND age = 40 AND amount > 9 AND note = 'x')"
)


def _planned(text: str) -> Plan:
    statement = one(text)
    assert statement is not None
    return with_access(bind_query(statement.tree, KnownNames(), Parameters())).plan


def _join(kind: str) -> Join:
    plan = _planned(f"SELECT * FROM people {kind} JOIN orders ON {ALTERNATIVES}")
    return next(node for node in walk(plan) if isinstance(node, Join))


def _conditions(plan: Plan) -> int:
    assert isinstance(plan, Scan)
    return len(conjuncts(plan.condition))


def test_what_all_alternatives_share_is_a_condition_of_its_own() -> None:
    join = _join("INNER")
    equalities = [each for each in conjuncts(join.condition) if equated(each, len(join.left.outputs))]
    assert len(equalities) == 1


def test_each_side_of_an_inner_join_is_told_what_the_alternatives_say_about_it() -> None:
    join = _join("INNER")
    assert _conditions(join.left) == 1  # age = 30 OR age = 40
    assert _conditions(join.right) == 2  # note = 'x', and amount > 5 OR amount > 9


def test_the_side_that_an_outer_join_keeps_is_not_filtered() -> None:
    join = _join("LEFT")
    assert join.kind is JoinKind.LEFT
    assert _conditions(join.left) == 0
    assert _conditions(join.right) == 2


def test_an_alternative_that_is_no_more_than_what_is_shared_leaves_nothing_else() -> None:
    plan = _planned("SELECT * FROM people WHERE (age = 3 AND name = 'a') OR age = 3")
    (scan,) = [node for node in walk(plan) if isinstance(node, Scan)]
    assert len(conjuncts(scan.condition)) == 1
