"""information_schema: the rows of PostgreSQL, for the superuser and for a user with some privileges."""

import psycopg
import pytest

from tests.clients.catalogs.world import Side

OURS = "table_schema IN ('public', 'app')"
OF_CONSTRAINTS = "constraint_schema IN ('public', 'app')"
QUERIES = {
    "tables": f"""SELECT table_schema, table_name, table_type, is_typed
        FROM information_schema.tables WHERE {OURS}""",
    "columns": f"""SELECT table_schema, table_name, column_name, ordinal_position, column_default,
        is_nullable, data_type, character_maximum_length, character_octet_length, numeric_precision,
        numeric_precision_radix, numeric_scale, datetime_precision, interval_type, collation_name,
        udt_schema, udt_name, dtd_identifier, is_self_referencing, is_identity, identity_generation,
        identity_start, identity_increment,
        identity_maximum, identity_minimum, identity_cycle, is_generated, generation_expression
        FROM information_schema.columns WHERE {OURS}""",
    "sequences": """SELECT sequence_schema, sequence_name, data_type, numeric_precision, start_value,
        minimum_value, maximum_value, increment, cycle_option FROM information_schema.sequences""",
    "constraints": f"""SELECT constraint_schema, constraint_name, table_name, constraint_type, is_deferrable,
        initially_deferred, enforced, nulls_distinct FROM information_schema.table_constraints
        WHERE {OF_CONSTRAINTS}""",
    "key columns": f"""SELECT constraint_name, table_name, column_name, ordinal_position,
        position_in_unique_constraint FROM information_schema.key_column_usage WHERE {OF_CONSTRAINTS}""",
    "references": """SELECT constraint_name, unique_constraint_schema, unique_constraint_name, match_option,
        update_rule, delete_rule FROM information_schema.referential_constraints""",
    "checks": f"""SELECT constraint_schema, constraint_name, check_clause
        FROM information_schema.check_constraints WHERE {OF_CONSTRAINTS}""",
    "used columns": f"""SELECT table_name, column_name, constraint_schema, constraint_name
        FROM information_schema.constraint_column_usage WHERE {OF_CONSTRAINTS}""",
    "views": f"SELECT table_name, check_option FROM information_schema.views WHERE {OURS}",
    "schemata": "SELECT schema_name FROM information_schema.schemata WHERE schema_name !~ '^pg_(temp|toast)'",
    "grants": f"""SELECT grantee, table_name, privilege_type, is_grantable
        FROM information_schema.table_privileges WHERE {OURS} AND grantee = 'reader'""",
    "system": """SELECT table_schema, table_name FROM information_schema.tables
        WHERE table_schema IN ('pg_catalog', 'information_schema') AND table_name NOT LIKE '\\_pg\\_%'""",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_has_the_rows_of_postgresql(ours: Side, theirs: Side, name: str) -> None:
    mine, wanted = (sorted(side.rows(QUERIES[name]), key=repr) for side in (ours, theirs))
    assert mine == wanted


@pytest.mark.parametrize("name", ["tables", "columns", "constraints", "checks", "used columns", "references"])
def test_a_user_sees_what_it_has_privileges_on(ours: Side, theirs: Side, name: str) -> None:
    found = []
    for side in (ours, theirs):
        with psycopg.connect(side.dsn, autocommit=True) as connection:
            connection.execute("SET ROLE reader")
            found.append(sorted(connection.execute(QUERIES[name].encode()).fetchall(), key=repr))
    assert found[0] == found[1]
