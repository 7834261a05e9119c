from collections import Counter
from dataclasses import fields, replace
from typing import cast

from tenure.expr.functions.function import Context
from tenure.sql.plans.plan import Query
from tenure.sql.rows.run import QueryRun


def _filled(kind: type) -> dict[str, object]:
    """A value of its own for each field, so that a field in the place of another is noticed."""
    return {field.name: object() for field in fields(kind)}


def test_the_context_of_a_query_differs_in_its_values_and_subqueries_only() -> None:
    context = Context(**_filled(Context))  # type: ignore[arg-type]
    values, nested = [1, "a"], [lambda: None]
    assert context.of_query(values, nested) == replace(context, context_values=values, nested=nested)


def test_the_run_of_a_query_has_the_sources_of_the_statement_and_has_read_nothing() -> None:
    run = QueryRun(**_filled(QueryRun))  # type: ignore[arg-type]
    query, context, values = cast(Query, object()), cast(Context, object()), [1]
    nothing_read = replace(run, shared={}, working={}, rounds=Counter(), scans={})
    expected = replace(nothing_read, query=query, context=context, context_values=values)
    assert run.of_query(query, context, values) == expected
