"""The clauses that contain expressions, and the calls that each of them forbids, in PostgreSQL's words.

A clause is known by the name that error messages use: WHERE, HAVING, LIMIT. These have no keyword of their
own: CHANGEFEED, CHECK, DEFAULT, GENERATED, INDEX EXPRESSION, INDEX PREDICATE, USING (of ALTER COLUMN ...
TYPE), EXECUTE parameter, JOIN/ON, FUNCTION (in FROM), "window PARTITION BY", "window ORDER BY", "window
frame", COPY FROM WHERE.

Walk: `sql.bind.aggregates`, `sql.bind.windows`, `sql.bind.set_calls` and `sql.bind.subqueries` ask before
they make a call.
"""

from tenure.base.errors import GroupingFault, NotSupported, WindowFault

_PLURALS = {
    "CHANGEFEED": "queries of changefeeds",
    "CHECK": "check constraints",
    "DEFAULT": "DEFAULT expressions",
    "GENERATED": "column generation expressions",
    "INDEX EXPRESSION": "index expressions",
    "INDEX PREDICATE": "index predicates",
    "USING": "transform expressions",
    "EXECUTE parameter": "EXECUTE parameters",
    "JOIN/ON": "JOIN conditions",
    "FUNCTION": "functions in FROM",
    "window frame": "window RANGE",
    "COPY FROM WHERE": "COPY FROM WHERE conditions",
}
_SINGULARS = {
    "CHANGEFEED": "query of a changefeed",
    "CHECK": "check constraint",
    "DEFAULT": "DEFAULT expression",
    "GENERATED": "column generation expression",
    "INDEX EXPRESSION": "index expression",
    "INDEX PREDICATE": "index predicate",
    "USING": "transform expression",
    "EXECUTE parameter": "EXECUTE parameter",
    "COPY FROM WHERE": "COPY FROM WHERE condition",
}
_WINDOW_PARTS = ("window PARTITION BY", "window ORDER BY", "window frame")
_AGGREGATES = ("SELECT", "HAVING", "ORDER BY", "DISTINCT ON", "window PARTITION BY", "window ORDER BY")
_WINDOWS = ("SELECT", "ORDER BY", "DISTINCT ON")
_SETS = ("SELECT", "ORDER BY", "DISTINCT ON", "GROUP BY")


def check_aggregate(clause: str, location: int) -> None:
    """Raises GroupingFault (42803) where no aggregate may stand."""
    if not clause:
        raise GroupingFault(
            "aggregate functions are not allowed in FROM clause of their own query level",
            position=location + 1,
        )
    if clause not in _AGGREGATES:
        raise GroupingFault(
            f"aggregate functions are not allowed in {_PLURALS.get(clause, clause)}", position=location + 1
        )


def check_window(clause: str, location: int) -> None:
    """Raises WindowFault (42P20) where no window function may stand."""
    if clause not in _WINDOWS:
        where = "window definitions" if clause in _WINDOW_PARTS else _PLURALS.get(clause, clause)
        raise WindowFault(f"window functions are not allowed in {where}", position=location + 1)


def check_set(clause: str, location: int) -> None:
    """Raises NotSupported (0A000) where no function that gives a set may stand."""
    if clause == "FUNCTION":
        raise NotSupported("set-returning functions must appear at top level of FROM", position=location + 1)
    if clause not in _SETS:
        where = "window definitions" if clause in _WINDOW_PARTS else _PLURALS.get(clause, clause)
        raise NotSupported(f"set-returning functions are not allowed in {where}", position=location + 1)


def check_subquery(clause: str, location: int) -> None:
    if clause in _SINGULARS:
        raise NotSupported(f"cannot use subquery in {_SINGULARS[clause]}", position=location + 1)


def check_column(clause: str, location: int) -> None:
    if clause == "DEFAULT":
        raise NotSupported("cannot use column reference in DEFAULT expression", position=location + 1)
