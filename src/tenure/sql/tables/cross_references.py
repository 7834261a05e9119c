"""`tenure_internal.cross_database_references`: which objects refer to objects of another database.

Walk: `sql.tables.all` collects `definitions`; these ask `catalog.changes.cross_database.references`.
"""

from collections.abc import Iterator

from tenure.catalog.changes.cross_database import references
from tenure.catalog.descriptors.definitions import Contained
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.catalog import KINDS
from tenure.sql.tables.objects import objects
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define


def _references(reader: TableReader) -> Rows:
    catalog = objects(reader)
    for each in filter(catalog.shows, catalog.by_id.values()):
        for found in references(each, catalog.by_id.get):
            yield tuple(
                value
                for side in (found.user, found.used)
                for value in (catalog.database_of(side), catalog.schema_of(side), side.name, _kind(side))
            )


def _kind(descriptor: Contained) -> str:
    return KINDS[type(descriptor)]


def definitions() -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.cross_database_references",
        _references,
        "References of objects to those of other databases, by foreign keys, views, types and defaults.",
        ("database_name", "text not null", "The database of the object that refers."),
        ("schema_name", "text not null", "Its schema."),
        ("name", "text not null", "Its name."),
        ("type", "text not null", "table or view."),
        ("referenced_database_name", "text not null", "The database of the object that is referred to."),
        ("referenced_schema_name", "text not null", "Its schema."),
        ("referenced_name", "text not null", "Its name."),
        ("referenced_type", "text not null", "table, view, sequence or type."),
    )
