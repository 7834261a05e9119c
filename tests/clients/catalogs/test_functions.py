"""pg_proc, pg_operator, pg_cast, pg_aggregate: PostgreSQL's rows of what exists here."""

import psycopg
import pytest

from tenure.expr.types.system_types import PSEUDO_TYPE_OIDS
from tenure.sql.tables.pg_catalog.callables import callables, is_operator
from tenure.sql.tables.pg_catalog.declared_rows import FOLDER
from tenure.sql.tables.pg_catalog.functions import OWN
from tests.clients.catalogs.postgres_rows import files
from tests.clients.catalogs.world import Side

NOT_FOR_PEOPLE = {
    *("subscript", "array_element", "array_slice", "tenure_sql_liveness_is_alive", "_pg_expandarray"),
    *(f"tenure_{kind}_{what}_absent" for kind in ("json", "jsonb") for what in ("array", "object")),
    "tenure_is_json",
    *("tenure_nextval", "tenure_currval", "tenure_setval", "tenure_lastval"),
    *("current_timestamp", "current_date", "localtimestamp", "localtime", "current_role", "user"),
    "current_catalog",
}
"""What subscripts, sequences, JSON constructors and keywords are computed by; what has its own schema."""

UNLISTED = {"table_changes"}
"""Functions in FROM that PostgreSQL does not have: no row of pg_proc tells of them."""


@pytest.fixture(scope="module")
def texts(theirs: Side) -> dict[str, str]:
    with psycopg.connect(theirs.dsn, autocommit=True) as connection:
        return files(connection)


def test_the_files_of_rows_are_what_postgresql_has(texts: dict[str, str]) -> None:
    """If not: python -m tests.clients.catalogs.postgres_rows"""
    assert {path.stem: path.read_text() for path in FOLDER.glob("*.tsv")} == texts


def test_every_function_that_people_call_is_listed(ours: Side) -> None:
    listed = {name for (name,) in ours.rows("SELECT proname FROM pg_proc")}
    names = {each.name for each in callables() if not is_operator(each)}
    assert names - listed == NOT_FOR_PEOPLE | UNLISTED
    assert {*OWN} <= listed


def test_every_operator_is_listed(ours: Side) -> None:
    (count,) = ours.rows("SELECT count(*) FROM pg_operator")[0]
    assert count == sum(map(is_operator, callables()))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT oid::int8, * FROM pg_operator WHERE oid IN (96, 551, 654, 3284) ORDER BY oid",
        "SELECT * FROM pg_aggregate WHERE aggfnoid::oid IN (2108, 2803, 3972) ORDER BY aggfnoid::oid",
        "SELECT oid::int8, proname, prolang::int8, procost, prorows, prosupport, prokind, proisstrict,"
        " proretset, provolatile, proparallel, pronargs, prorettype::int8, proargtypes, proargnames, prosrc,"
        " pg_get_function_arguments(oid), pg_get_function_result(oid), pg_get_functiondef(oid)"
        " FROM pg_proc WHERE oid IN (870, 1067, 2026, 3100) ORDER BY oid",
        "SELECT castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext, castmethod"
        " FROM pg_cast WHERE castsource = 'int4'::regtype AND casttarget IN (16, 20, 700, 1700) ORDER BY 2",
        "SELECT t.typname, p.proname FROM pg_type t JOIN pg_proc p ON p.oid = t.typreceive"
        " WHERE typname IN ('int4', '_int4', 'jsonb') ORDER BY 1",
        "SELECT amopopr::regoperator FROM pg_amop WHERE amopfamily = 1976 AND amoplefttype = 23"
        " AND amoprighttype = 23 ORDER BY amopstrategy",
        "SELECT oid::int8, typname, typtype, format_type(oid, NULL) FROM pg_type WHERE typtype = 'p'"
        " AND typelem = 0 ORDER BY oid",
        "SELECT 'now'::regproc, 'abs(int4)'::regprocedure::oid::int8, 870::regprocedure, 96::regoperator,"
        " '-(none, int4)'::regoperator::oid::int8, to_regproc('nope'), 0::regproc, 'trigger'::regtype",
    ],
)  # fmt: skip
def test_a_query_about_functions_gives_what_postgresql_gives(ours: Side, theirs: Side, query: str) -> None:
    rows = [tuple(str(each) for each in row) for row in ours.rows(_without_owner(query))]
    assert rows == [tuple(str(each) for each in row) for row in theirs.rows(_without_owner(query))]


def _without_owner(query: str) -> str:
    columns = "oprname, oprkind, oprcanmerge, oprcanhash, oprleft::regtype, oprresult, oprcom::int8, oprcode"
    return query.replace("oid::int8, * FROM pg_operator", f"{columns} FROM pg_operator")


@pytest.mark.parametrize(
    "command", [r"\dfS upper", r"\df", r"\dfn", r"\dft", r"\daS sum", r"\sf abs(int)", r"\dfwS"]
)
def test_psql_shows_system_functions(ours: Side, theirs: Side, command: str) -> None:
    """Without those of types that do not exist here, and without comments."""
    absent = ("money", "anyrange", "anymultirange")
    lines = [line for line in theirs.psql(command).splitlines() if not any(each in line for each in absent)]
    shown = [line.rpartition("|")[0] if command.startswith(r"\da") else line for line in lines]
    mine = ours.psql(command).splitlines()
    mine = [line.rpartition("|")[0] if command.startswith(r"\da") else line for line in mine]
    assert [each for each in mine if " row" not in each] == [each for each in shown if " row" not in each]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("'sum'::regproc", "42725"),
        ("'nope'::regproc", "42883"),
        ("'lower'::regprocedure", "22P02"),
        ("'lower(int4)'::regprocedure", "42883"),
        ("'+++(int4, int4)'::regoperator", "42883"),
        ("pg_get_functiondef(2108)", "42809"),
    ],
)
def test_a_name_of_no_function_is_refused(ours: Side, theirs: Side, text: str, sqlstate: str) -> None:
    for side in (ours, theirs):
        with pytest.raises(psycopg.Error) as caught:
            side.rows(f"SELECT {text}")
        assert caught.value.sqlstate == sqlstate


def test_pseudo_types_have_postgresqls_oids(theirs: Side) -> None:
    found = theirs.rows(
        "SELECT format_type(oid, NULL), oid::int8 FROM pg_type WHERE typtype = 'p' AND typelem = 0"
        " AND oid NOT IN (705, 2278) AND typnamespace = 11"
    )
    assert {name: oid for name, oid in found} == PSEUDO_TYPE_OIDS  # noqa: C416


def test_a_cast_that_nothing_makes_here_is_not_listed(ours: Side, theirs: Side) -> None:
    query = "SELECT castsource::regtype::text, casttarget::regtype::text FROM pg_cast WHERE castmethod <> 'i'"
    mine = {*ours.rows(query)}
    assert ("integer", "bigint") in mine
    assert ("regproc", "regprocedure") not in mine
    assert mine < {*theirs.rows(query)}
