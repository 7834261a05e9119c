"""Calls of every function, operator and aggregate that `expr` lists, and casts between all types.

    Deck(random).next()      each in turn, shuffled: what is added to `expr` is asked about by itself

Arguments are of the declared types, now and then of others: then the overload, or the error, is compared.

Walk: `queries` puts the calls into statements.
"""

from collections.abc import Sequence
from itertools import cycle
from random import Random
from typing import Protocol

from tenure.expr.aggregates.aggregate_table import AGGREGATES
from tenure.expr.function_table import FUNCTIONS
from tenure.expr.functions.function import Function, Volatility
from tests.differential.expressions import Maker
from tests.differential.values import ENUM, NASTY, quoted, typed
from tests.differential.words import words_for

OWN_ANSWER = (
    *(
        "now",
        "current_timestamp",
        "transaction_timestamp",
        "statement_timestamp",
        "current_date",
        "localtimestamp",
    ),
    *(
        "localtime",
        "current_user",
        "current_role",
        "user",
        "session_user",
        "current_catalog",
        "current_database",
    ),
    *("version", "pg_backend_pid", "txid_current", "pg_postmaster_start_time", "cluster_logical_timestamp"),
    *("inet_server_addr", "inet_server_port", "inet_client_addr", "inet_client_port", "current_schema"),
    *(
        "current_schemas",
        "current_setting",
        "pg_my_temp_schema",
        "uuid_generate_v4",
        "format_type",
        "pg_jit_available",
    ),
    *("to_regclass", "to_regproc", "to_regprocedure", "to_regnamespace", "to_regrole", "to_regtype"),
)
"""What each server, session or moment answers for itself."""
OWN_SYNTAX = ("subscript", "array_element", "array_slice", "similar_to_escape")
"""Names here of what SQL writes without a name: `shapes` writes it."""

_STAND_INS = {
    "char": ["char(5)"],
    "varchar": ["varchar(10)"],
    "anynonarray": ["int8", "date", "bool", "jsonb", ENUM],
}
_ELEMENTS = [
    "int4",
    "text",
    "numeric",
    "int8",
    "bool",
    "date",
    ENUM,
    "jsonb",
    "uuid",
    "timestamptz",
    "float8",
]
_ANY = [
    "int4",
    "text",
    "numeric",
    "bool",
    "date",
    "jsonb",
    "int4[]",
    "interval",
    ENUM,
    "bytea",
    "timestamp",
    "json",
]


class Callable(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> tuple[str, ...]: ...
    @property
    def is_variadic(self) -> bool: ...


def asked_functions() -> list[Function]:
    return [
        each
        for each in FUNCTIONS
        if each.volatility is not Volatility.VOLATILE
        and each.name not in (*OWN_ANSWER, *OWN_SYNTAX)
        and not each.name.startswith(("tenure_", "pg_", "has_", "obj_", "col_"))
        and not (each.name == "age" and len(each.arguments) == 1)
        and not {"oid", "name", '"char"', "regclass", "regtype"} & set(each.arguments)
    ]


class Deck:
    """Names first, then one of their overloads: else comparisons would be most of it."""

    def __init__(self, random: Random, calls: Sequence[Callable]) -> None:
        self._random = random
        self._by_name: dict[str, list[Callable]] = {}
        for each in calls:
            self._by_name.setdefault(each.name, []).append(each)
        names = sorted(self._by_name)
        random.shuffle(names)
        self._names = cycle(names)

    def next(self) -> Callable:
        return self._random.choice(self._by_name[next(self._names)])


def aggregates() -> list[Callable]:
    return [each for each in AGGREGATES if "oid" not in each.arguments]


def arguments(maker: Maker, call: Callable, *, are_strange: float = 0.12) -> list[str]:
    """SQL for the arguments of a call."""
    random = maker.random
    families = list(call.arguments)
    if call.is_variadic:
        families += [families[-1]] * random.randrange(3)
    element = random.choice(_ELEMENTS)
    made = []
    for at, family in enumerate(families):
        kind = _kind_of(random, family, element)
        words = words_for(call.name, call.arguments, at) if at < len(call.arguments) else None
        if random.random() < are_strange:
            kind, words = random.choice([*NASTY]), None
        made.append(_argument(maker, kind, words))
    return made


def _argument(maker: Maker, kind: str, words: list[str] | None) -> str:
    random = maker.random
    if words is not None:
        text = None if random.random() < 0.05 else random.choice(words)
        return quoted(text) if random.random() < 0.3 else typed(text, kind)
    if random.random() < 0.12:
        return quoted(random.choice(maker.pools[kind]))
    return maker.leaf(kind)


def _kind_of(random: Random, family: str, element: str) -> str:
    if family == "anyenum":
        return ENUM
    if family in ("anyarray", "anycompatiblearray"):
        return f"{element}[]" if f"{element}[]" in NASTY else "int4[]"
    if family in ("anyelement", "anycompatible"):
        return element if f"{element}[]" in NASTY else "int4"
    if family == "any":
        return random.choice(_ANY)
    if family in _STAND_INS:
        return random.choice(_STAND_INS[family])
    return family if family in NASTY else "text"


def call_text(name: str, given: Sequence[str]) -> str:
    if name[0].isalpha() or name[0] == "_":
        quoted_name = (
            f'pg_catalog."{name}"'
            if name in ("position", "overlay", "extract", "overlaps", "substring")
            else name
        )
        return f"{quoted_name}({', '.join(given)})"
    return f"({name} {given[0]})" if len(given) == 1 else f"({given[0]} {name} {given[1]})"
