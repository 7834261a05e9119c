"""Few values of few types, so that keys collide, references hold and conditions find rows.

Walk: `rows` and `definitions` ask for literals; scripts name their objects from the pools here.
"""

from random import Random

from tests.differential.transactions.catalog import Catalog

TABLES = ("t0", "t1", "t2", "t3", "extra.t4")
COLUMNS = ("a", "b", "c", "d", "e")
INDEXES = ("i0", "i1", "i2")
CONSTRAINTS = ("k0", "k1", "k2", "k3")
VIEWS = ("v0", "v1")
SEQUENCES = ("q0", "q1")
TYPES = ("e0", "e1")
KINDS = ("integer", "integer", "bigint", "text", "text", "numeric(6,2)", "boolean", "date")
VALUES = {
    "integer": ("0", "1", "2", "3", "4", "5", "7"),
    "bigint": ("0", "1", "2", "3", "5", "30000000000"),
    "smallint": ("0", "1", "2", "3"),
    "text": ("'a'", "'b'", "'c'", "'ab'", "''"),
    "numeric(6,2)": ("0", "1.5", "2.25", "-1", "10"),
    "boolean": ("true", "false"),
    "date": ("'2024-02-29'", "'2023-01-01'", "'1999-12-31'"),
}
WRONG = {"integer": ("3000000000", "'x'"), "numeric(6,2)": ("99999.99",), "date": ("'2024-02-30'",)}
NULL_SHARE, WRONG_SHARE = 0.12, 0.02


def literal(random: Random, kind: str, catalog: Catalog) -> str:
    """A value of the type, sometimes NULL, seldom one that the type does not take."""
    if random.random() < NULL_SHARE:
        return "NULL"
    if kind in WRONG and random.random() < WRONG_SHARE:
        return random.choice(WRONG[kind])
    return value(random, kind, catalog)


def value(random: Random, kind: str, catalog: Catalog) -> str:
    labels = catalog.labels(kind)
    if labels:
        return f"'{random.choice(labels)}'"
    return random.choice(VALUES.get(kind, ("NULL",)))
