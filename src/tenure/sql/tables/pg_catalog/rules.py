"""pg_rewrite: the rule of each view that SELECT from it is its query.

Other rules do not exist here. Dependencies of a view are those of its rule, as in PostgreSQL, so that clients
find through it what a view reads.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tenure.catalog.descriptors.definitions import View
from tenure.expr.types.datatype import Datum
from tenure.sql.names.object_numbers import part_oid
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.classes import relation_id
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

REWRITE = shape("pg_rewrite")


def definitions() -> Iterator[VirtualDefinition]:
    rules = ObjectRows((View,), _rule)
    yield REWRITE.defined(rules.all, {"ev_class": rules.of, "oid": partial(_by_oid, rules)})


def rule_oid(view: View) -> int:
    return part_oid(view.id, 0)


def _by_oid(rules: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    return rules.of(reader, map(relation_id, oids))


def _rule(view: View, catalog: CatalogReader) -> Iterator[Row]:
    yield REWRITE.row(
        oid=rule_oid(view),
        rulename="_RETURN",
        ev_class=view.id,
        ev_type="1",
        ev_enabled="O",
        is_instead=True,
        ev_qual="<>",
        ev_action=view.query,
    )
