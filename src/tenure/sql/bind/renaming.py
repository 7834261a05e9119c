"""Plans with other names for their columns.

Walk: WITH, views and aliases of columns.
"""

from collections.abc import Sequence
from dataclasses import replace

from tenure.expr.tree.expressions import ColumnRef, Node
from tenure.sql.plans.plan import OutputColumn, Plan, Project


def renamed(plan: Plan, columns: Sequence[str]) -> Plan:
    """The same rows under other names; fewer names than columns leave the rest as they are."""
    outputs = tuple(
        each._replace(name=columns[at]) if at < len(columns) else each for at, each in enumerate(plan.outputs)
    )
    if isinstance(plan, Project):
        return plan if outputs == plan.outputs else replace(plan, outputs=outputs)
    return projected(plan, outputs, tuple(ColumnRef(at) for at in range(len(outputs))))


def projected(plan: Plan, outputs: tuple[OutputColumn, ...], expressions: tuple[Node, ...]) -> Plan:
    """A projection, unless it would change nothing."""
    if outputs == plan.outputs and all(each == ColumnRef(at) for at, each in enumerate(expressions)):
        return plan
    return Project(outputs, plan, expressions)
