"""Writes the files of rows that PostgreSQL's own catalogs have about functions, operators and casts.

    python -m tests.clients.catalogs.postgres_rows      starts PostgreSQL, and writes what Tenure has too

Of functions, operators and aggregates these are the ones of Tenure's tables that PostgreSQL has under the
same name and types, and the functions that types, operators, casts and aggregates refer to.
`test_functions` compares the files with what this module makes.

Walk: `test_functions` calls `files`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.casts import ASSIGNMENT, EXPLICIT, IMPLICIT, can_cast
from tenure.expr.types.system_types import TYPE_OIDS
from tenure.expr.types.type_names import type_of
from tenure.sql.tables.pg_catalog.built_in_types import BUILT_IN, ENUM, array_of
from tenure.sql.tables.pg_catalog.callables import callables, is_operator, signature
from tenure.sql.tables.pg_catalog.declared_rows import FOLDER
from tests import postgres_server

TYPES = [oid for oids in TYPE_OIDS.values() for oid in oids if oid]
KINDS = (*BUILT_IN.values(), ENUM, array_of(ENUM))
BTREE_FAMILIES = [each.operators[2] for each in KINDS if each.operators]

_FUNCTION = re.compile(r"\b(\d+) [a-z]")
"""An oid and a name."""
_SIGNATURES = """SELECT oid::int8, proname, proargtypes::regtype[]::text[] FROM pg_proc
    WHERE pronamespace = 11"""
_OPERATORS = "SELECT oid::int8, oprname, oprleft::regtype::text, oprright::regtype::text FROM pg_operator"
PROCEDURES = """SELECT oid, proname, prolang, procost, prorows, provariadic, prokind, proleakproof,
        proisstrict, proretset, provolatile, proparallel, pronargs, pronargdefaults, prorettype, proargtypes,
        proallargtypes, proargmodes, proargnames,
        prosupport::oid || ' ' || prosupport AS prosupport, nullif(prosrc, proname) AS prosrc,
        pg_get_function_arguments(oid) AS arguments,
        nullif(pg_get_function_identity_arguments(oid), pg_get_function_arguments(oid)) AS identity,
        pg_get_function_result(oid) AS result
    FROM pg_proc WHERE oid = ANY (%s::oid[]) ORDER BY oid"""
OPERATORS = """SELECT oid, oprname, oprkind, oprcanmerge, oprcanhash, oprleft, oprright, oprresult,
        CASE WHEN oprcom = ANY (%s::oid[]) THEN oprcom ELSE 0 END AS oprcom,
        CASE WHEN oprnegate = ANY (%s::oid[]) THEN oprnegate ELSE 0 END AS oprnegate,
        oprcode::oid || ' ' || oprcode AS oprcode,
        oprrest::oid || ' ' || oprrest AS oprrest, oprjoin::oid || ' ' || oprjoin AS oprjoin
    FROM pg_operator WHERE oid = ANY (%s::oid[]) ORDER BY oid"""
CASTS = """SELECT oid, castsource, casttarget, castfunc, castcontext, castmethod FROM pg_cast
    WHERE oid = ANY (%s::oid[]) ORDER BY oid"""
_CASTS = "SELECT oid::int8, castsource::int8, casttarget::int8, castcontext FROM pg_cast"
CONTEXTS = {"i": IMPLICIT, "a": ASSIGNMENT, "e": EXPLICIT}
_BY_OID = {
    oid: type_of(TypeRef(name, is_array=bool(is_array)))
    for name, oids in TYPE_OIDS.items()
    for is_array, oid in enumerate(oids)
    if oid
}
_FUNCTIONS_OF_AGGREGATES = (
    *("aggtransfn", "aggfinalfn", "aggcombinefn", "aggserialfn", "aggdeserialfn", "aggmtransfn"),
    *("aggminvtransfn", "aggmfinalfn"),
)
_CALLS = ", ".join(f"{each}::oid || ' ' || {each} AS {each}" for each in _FUNCTIONS_OF_AGGREGATES)
AGGREGATES = f"""SELECT p.oid || ' ' || aggfnoid AS aggfnoid, aggkind, aggnumdirectargs, {_CALLS},
        aggfinalextra, aggmfinalextra, aggfinalmodify, aggmfinalmodify,
        CASE WHEN aggsortop = ANY (%s::oid[]) THEN aggsortop ELSE 0 END AS aggsortop, aggtranstype,
        aggtransspace, aggmtranstype, aggmtransspace, agginitval, aggminitval
    FROM pg_aggregate JOIN pg_proc p ON p.oid = aggfnoid WHERE aggfnoid = ANY (%s::oid[]) ORDER BY p.oid"""
STRATEGIES = """SELECT oid, amopfamily, amoplefttype, amoprighttype, amopstrategy, amoppurpose, amopopr,
        amopmethod, amopsortfamily FROM pg_amop
    WHERE amopfamily = ANY (%s::oid[]) AND amopopr = ANY (%s::oid[]) ORDER BY oid"""

_OF_TYPES = ", ".join(
    f"{each}::oid || ' ' || {each} AS {each}" for each in ("typinput", "typoutput", "typreceive", "typsend")
)
PSEUDO_TYPES = f"""SELECT oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typisdefined,
        typdelim, typelem, typarray, {_OF_TYPES}, typalign, typstorage, typtypmod
    FROM pg_type WHERE typtype = 'p' AND typnamespace = 11 AND NOT oid = ANY (%s::oid[]) AND typelem = 0
        ORDER BY oid"""


def files(connection: "Connection[Any]") -> dict[str, str]:
    """The text of each file, by the name of its relation."""
    connection.execute("SET search_path = ''")
    known = {signature(each) for each in callables()}
    rows = connection.execute(_SIGNATURES.encode()).fetchall()
    functions = [oid for oid, name, types in rows if (name, tuple(types)) in known]
    rows = connection.execute(_OPERATORS.encode()).fetchall()
    known = {signature(each) for each in callables() if is_operator(each)}
    operators = [
        oid for oid, name, *sides in rows if (name, tuple(each for each in sides if each != "-")) in known
    ]
    listed = {
        "pg_operator": _table(connection, OPERATORS, operators, operators, operators),
        "pg_cast": _table(connection, CASTS, _casts(connection)),
        "pg_aggregate": _table(connection, AGGREGATES, operators, functions),
        "pg_type": _table(connection, PSEUDO_TYPES, TYPES),
        "pg_amop": _table(connection, STRATEGIES, BTREE_FAMILIES, operators),
    }
    return {**listed, "pg_proc": _table(connection, PROCEDURES, [*functions, *_used(listed)])}


def _casts(connection: "Connection[Any]") -> list[int]:
    """Those that Tenure makes too, where PostgreSQL makes them."""
    rows = connection.execute(_CASTS.encode()).fetchall()
    return [
        oid
        for oid, source, target, context in rows
        if source in _BY_OID
        and target in _BY_OID
        and can_cast(_BY_OID[source], _BY_OID[target], CONTEXTS[context])
    ]


def _table(connection: "Connection[Any]", query: str, *oids: list[int]) -> str:
    """As COPY writes it, with the names of the columns first."""
    text = query
    for each in oids:
        text = text.replace("%s", "'{" + ",".join(map(str, each)) + "}'", 1)
    with connection.cursor().copy(f"COPY ({text}) TO STDOUT (HEADER)".encode()) as copy:
        lines = b"".join(map(bytes, copy)).decode().splitlines()
    return _shortened([line.split("\t") for line in lines])


def _shortened(lines: list[list[str]]) -> str:
    """The most frequent value of a column stands in the first line, and nothing in its place."""
    header, *rows = lines
    usual = []
    for place in range(len(header)):
        values = Counter(row[place] for row in rows)
        usual.append("" if "" in values else values.most_common(1)[0][0])
    shown = [[name + f"={value}" * bool(value) for name, value in zip(header, usual, strict=True)]]
    shown += [["" if a == b else a for a, b in zip(row, usual, strict=True)] for row in rows]
    return "".join("\t".join(row) + "\n" for row in shown)


def _used(listed: dict[str, str]) -> Iterator[int]:
    """The functions that rows of the other relations and types refer to."""
    for text in listed.values():
        yield from map(int, _FUNCTION.findall(text))
    casts = [line.split("\t") for line in listed["pg_cast"].splitlines()[1:]]
    yield from (int(line[3] or 0) for line in casts)
    for kind in KINDS:
        yield from (each.oid for each in kind.functions)
    yield from (3, 330)  # the handlers of heap and btree


def main() -> None:
    directory = postgres_server.make_directory()
    try:
        server = postgres_server.start(directory)
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            for name, text in files(connection).items():
                (Path(FOLDER) / f"{name}.tsv").write_text(text)
    finally:
        postgres_server.remove_directory(directory)


if __name__ == "__main__":
    main()
