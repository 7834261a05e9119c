"""Plans as JSON, with the keys that PostgreSQL's clients look for.

    Index Scan using people_city on people      {"Node Type": "Index Scan", "Index Name": "people_city",
      Index Cond: city = 'x'                     "Relation Name": "people", "Index Cond": "city = 'x'"}

There are no costs: plans do not depend on statistics.

Walk: `sql.statements.show.explain` calls `plan_json` for EXPLAIN (FORMAT JSON).
"""

import re
from typing import Any

from tenure.sql.explain.plan_text import PlanNode, PlanTree

_TITLE = re.compile(r"(?P<type>.*?)(?: using (?P<index>.+?))?(?: on (?P<relation>.+))?")
JsonNode = dict[str, Any]


def plan_json(tree: PlanTree) -> JsonNode:
    """The root of a plan; what stands beside it comes first among its inputs, as in PostgreSQL."""
    root = _node(tree.root)
    beside = [_part(name, node) for name, node in tree.parts]
    if beside:
        root["Plans"] = beside + root.get("Plans", [])
    return root


def _part(name: str, node: PlanNode) -> JsonNode:
    relationship = "SubPlan" if name.startswith("SubPlan") else "InitPlan"
    found = _node(node)
    return {
        "Node Type": found.pop("Node Type"),
        "Parent Relationship": relationship,
        "Subplan Name": name,
        **found,
    }


def _node(node: PlanNode) -> JsonNode:
    title = _TITLE.fullmatch(node.title)
    assert title is not None
    found: JsonNode = {"Node Type": title["type"]}
    if title["index"]:
        found["Index Name"] = title["index"]
    if title["relation"]:
        found["Relation Name"] = title["relation"]
    for line in node.details:
        key, _, value = line.partition(": ")
        found[key] = value if value else True
    found |= _statistics(node)
    if node.inputs:
        found["Plans"] = [_node(each) for each in node.inputs]
    return found


def _statistics(node: PlanNode) -> JsonNode:
    measured = node.statistics
    if node.is_never_executed:
        return {"Actual Rows": 0.0, "Actual Loops": 0}
    if measured is None:
        return {}
    found: JsonNode = {"Executor": "DuckDB"} if measured.is_offloaded else {}
    if measured.loops:
        found |= {
            "Actual Total Time": round(measured.seconds * 1000, 3),
            "Actual Rows": round(measured.rows / measured.loops, 2),
            "Actual Loops": measured.loops,
        }
    return found
