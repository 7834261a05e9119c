"""pg_proc and pg_aggregate: functions, and what regproc, regprocedure and pg_get_functiondef say of them.

Functions that PostgreSQL has too are PostgreSQL's own rows. Among them are those that types, operators and
aggregates refer to, which cannot be called here. Tenure's own functions follow, with oids that are hashes.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`; `sql.tables.pg_catalog.answers` asks the rest.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple
from zlib import crc32

from tenure.base.errors import AmbiguousFunction, InvalidText, WrongObjectType
from tenure.catalog.accounts.users import ROOT_ID
from tenure.expr.function_table import functions_named
from tenure.expr.functions.function import Volatility
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import TYPE_OIDS, Reg
from tenure.sql.names.object_numbers import CATALOG_SCHEMA, HASHED_FROM
from tenure.sql.names.regs import TYPE_NAMES
from tenure.sql.tables.pg_catalog.callables import shown_type, signature
from tenure.sql.tables.pg_catalog.declared_rows import declared_rows, fixed_definition
from tenure.sql.tables.pg_catalog.object_rows import Row
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import VirtualDefinition
from tenure.sql.text.quoting import quoted

PROCEDURE, AGGREGATE = shape("pg_proc"), shape("pg_aggregate")
INTERNAL_LANGUAGE = 12
OWN = ("cluster_logical_timestamp", "unique_rowid", "uuid_generate_v4", "convert_from", "convert_to")
"""Those that PostgreSQL does not have, or not with these types."""
TypeOid = Callable[[str], int]
"""The oid of a type by its name, as the session means it."""


def definitions() -> Iterator[VirtualDefinition]:
    yield fixed_definition(PROCEDURE, lambda: [each.row for each in _procedures().values()], "oid", "proname")
    yield fixed_definition(AGGREGATE, lambda: [AGGREGATE.row(**each) for each, _ in declared_rows(AGGREGATE)])


class Procedure(NamedTuple):
    name: str
    types: tuple[int, ...]
    arguments: str
    identity: str
    result: str | None
    values: dict[str, Datum]
    row: Row


@cache
def _procedures() -> dict[int, Procedure]:
    """By oid."""
    found = [*_of_postgresql(), *_own()]
    return {each.values["oid"]: each for each in found}


@cache
def _by_name() -> dict[str, list[Procedure]]:
    found = defaultdict(list)
    for each in _procedures().values():
        found[each.name].append(each)
    return found


def _of_postgresql() -> Iterator[Procedure]:
    for values, more in declared_rows(PROCEDURE):
        values["prosrc"] = values["prosrc"] or values["proname"]
        identity = more["arguments"] if more["identity"] is None else more["identity"]
        yield _procedure(values, more["arguments"], identity, more["result"])


def _own() -> Iterator[Procedure]:
    for name in OWN:
        for each in functions_named(name):
            _, types = signature(each)
            result = shown_type(each.result)
            values = {
                "oid": HASHED_FROM + crc32(each.id.encode()) // 2,
                "proname": name,
                "prolang": INTERNAL_LANGUAGE,
                "procost": 1.0,
                "prokind": "f",
                "proisstrict": each.is_strict,
                "provolatile": _VOLATILITY[each.volatility],
                "proparallel": "s",
                "pronargs": len(types),
                "prorettype": TYPE_OIDS[each.result][0],
                "proargtypes": tuple(TYPE_OIDS[family][0] for family in each.arguments),
                "prosrc": name,
            }
            yield _procedure(values, ", ".join(types), ", ".join(types), result)


_VOLATILITY = {Volatility.IMMUTABLE: "i", Volatility.STABLE: "s", Volatility.VOLATILE: "v"}


def _procedure(values: dict[str, Datum], arguments: Datum, identity: Datum, result: Datum) -> Procedure:
    row = PROCEDURE.row(pronamespace=CATALOG_SCHEMA, proowner=ROOT_ID, **values)
    return Procedure(values["proname"], values["proargtypes"], arguments, identity, result, values, row)


# ── by name and number ─────────────────────────────────────────────────────────────────────────


def procedure_named(sought: Datum, type_oid: TypeOid) -> Reg | None:
    """regproc: a name that means one function. Raises AmbiguousFunction (42725) if several have it."""
    if isinstance(sought, int):
        return Reg(sought, _name(sought, _alone))
    if sought == "-":
        return Reg(0, "-")
    found = _by_name().get(_plain(str(sought)), [])
    if len(found) > 1:
        raise AmbiguousFunction(f'more than one function named "{sought}"')
    return Reg(found[0].values["oid"], quoted(found[0].name)) if found else None


def procedure_with_types(sought: Datum, type_oid: TypeOid) -> Reg | None:
    """regprocedure: a name with the types of the arguments."""
    if isinstance(sought, int):
        return Reg(sought, _name(sought, _with_types))
    if sought == "-":
        return Reg(0, "-")
    name, types = split_signature(str(sought), type_oid)
    found = next((each for each in _by_name().get(_plain(name), []) if each.types == types), None)
    return None if found is None else Reg(found.values["oid"], _with_types(found))


def _alone(each: Procedure) -> str:
    """With its schema if it is not the only one of its name, as PostgreSQL shows it."""
    name = quoted(each.name)
    return name if len(_by_name()[each.name]) == 1 else f"pg_catalog.{name}"


def _with_types(each: Procedure) -> str:
    return f"{quoted(each.name)}({','.join(TYPE_NAMES[oid] for oid in each.types)})"


def _name(oid: int, shown: Callable[[Procedure], str]) -> str:
    found = _procedures().get(oid)
    return shown(found) if found is not None else "-" if oid == 0 else str(oid)


def _plain(name: str) -> str:
    return name.strip().removeprefix("pg_catalog.").strip('"')


def split_signature(text: str, type_oid: TypeOid) -> tuple[str, tuple[int, ...]]:
    """name(type, type), as regprocedure and regoperator read it; NONE is no side of an operator."""
    name, opening, rest = text.partition("(")
    if not opening:
        raise InvalidText("expected a left parenthesis")
    if not rest.rstrip().endswith(")"):
        raise InvalidText("expected a right parenthesis")
    types = [each.strip() for each in rest.rstrip()[:-1].split(",") if each.strip()]
    return name, tuple(0 if each.lower() == "none" else type_oid(each) for each in types)


# ── pg_get_function_* ──────────────────────────────────────────────────────────────────────────


def function_arguments(oid: int) -> str | None:
    found = _procedures().get(oid)
    return None if found is None else found.arguments


def function_identity(oid: int) -> str | None:
    found = _procedures().get(oid)
    return None if found is None else found.identity


def function_result(oid: int) -> str | None:
    found = _procedures().get(oid)
    return None if found is None else found.result


_WORDS = {"i": " IMMUTABLE", "s": " STABLE", "v": ""}
_PARALLEL = {"s": " PARALLEL SAFE", "r": " PARALLEL RESTRICTED", "u": ""}
DEFAULT_ROWS = 1000


def function_definition(oid: int) -> str | None:
    """As pg_get_functiondef writes it, of functions that are not written in SQL."""
    found = _procedures().get(oid)
    if found is None:
        return None
    values = found.values
    if values["prokind"] == "a":
        raise WrongObjectType(f'"{found.name}" is an aggregate function')
    if values["prolang"] != INTERNAL_LANGUAGE:
        return None
    options = " WINDOW" if values["prokind"] == "w" else ""
    options += _WORDS[values["provolatile"]] + _PARALLEL[values["proparallel"]]
    options += " STRICT" * values["proisstrict"] + " LEAKPROOF" * values.get("proleakproof", False)
    options += f" COST {values['procost']:g}" if values["procost"] != 1 else ""
    if values.get("proretset") and values["prorows"] != DEFAULT_ROWS:
        options += f" ROWS {values['prorows']:g}"
    support = values.get("prosupport", Reg(0, "-"))
    options += f" SUPPORT {support.name}" if support.oid else ""
    text = f"CREATE OR REPLACE FUNCTION pg_catalog.{quoted(found.name)}({found.arguments})\n"
    text += f" RETURNS {found.result}\n LANGUAGE internal\n" + f"{options}\n" * bool(options)
    return f"{text}AS $function${values['prosrc']}$function$\n"
