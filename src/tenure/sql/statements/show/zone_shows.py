"""SHOW ZONE CONFIGURATION: the ttl in force for an object, and where it comes from.

    SHOW ZONE CONFIGURATION FROM { RANGE DEFAULT | DATABASE d | SCHEMA [d.]s | TABLE t | INDEX i | INDEX t@i }
    SHOW ZONE CONFIGURATIONS                 all objects that have a zone of their own

Walk: `statements.statement_table` -> `statements` -> `statements.show.shows.query`.
"""

from functools import partial

from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Statement
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.ddl.zones import GC_TTL, find_target, read_target
from tenure.sql.statements.show.shows import query
from tenure.sql.text.quoting import literal
from tenure.sql.text.tenure_statements import TokenReader

COLUMNS = (
    f"upper(kind) || ' ' || name AS target, {literal(GC_TTL)} AS parameter, "
    "gc_ttl_seconds::text AS value, source"
)


def show_one(defining: DefinitionServices, planner: Planner, reader: TokenReader) -> Statement:
    if reader.is_over:
        return show_all(planner, reader)
    reader.expect("from")
    target = read_target(reader)
    reader.end()
    definer = Definer(defining, Execution(planner.session, planner.block, ()), planner.text)
    definer.names = planner.names  # notes which descriptors the plan is for
    found = find_target(definer, target)
    if found.descriptor is not None:
        planner.names.descriptor(found.descriptor.id)
    id, index = found.key
    return query(
        planner,
        f"SELECT {COLUMNS} FROM tenure_internal.zone_configurations WHERE id = {id} AND index_id = {index}",
    )


def show_all(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(
        planner,
        f"SELECT {COLUMNS} FROM tenure_internal.zone_configurations WHERE has_zone ORDER BY id, index_id",
    )


def statements(defining: DefinitionServices) -> dict[tuple[str, ...], WordsPlanner]:
    return {
        ("show", "zone", "configuration"): partial(show_one, defining),
        ("show", "zone", "configurations"): show_all,
    }
