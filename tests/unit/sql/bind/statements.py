"""Statements over the tables of `schema`: described here and by PostgreSQL alike, to the place of errors."""

from tests.unit.sql.bind.expressions import EXPRESSIONS, FUNCTIONS, MISSING, REFUSED
from tests.unit.sql.bind.queries import (
    GROUPS,
    JOINS,
    LOCKS,
    ORDERS,
    PARAMETERS,
    RECORDS,
    SETS,
    SUBQUERIES,
    WINDOWS,
    WITHS,
)

__all__ = [
    "EXPRESSIONS",
    "FUNCTIONS",
    "GROUPS",
    "JOINS",
    "LOCKS",
    "MISSING",
    "ORDERS",
    "PARAMETERS",
    "RECORDS",
    "REFUSED",
    "SETS",
    "SUBQUERIES",
    "WINDOWS",
    "WITHS",
]
