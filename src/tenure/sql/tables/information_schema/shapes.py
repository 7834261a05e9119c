"""The shapes of information_schema's views: see `sql.tables.pg_catalog.shapes`.

Walk: the modules of `sql.tables.information_schema` make rows by these; `sql.tables.pg_catalog.classes` lists
the views in pg_class.
"""

from collections.abc import Mapping
from functools import cache

from tenure.sql.tables.information_schema.view_columns import VIEWS
from tenure.sql.tables.pg_catalog.shapes import Shape, declared

SCHEMA = "information_schema"


@cache
def information_shapes() -> Mapping[str, Shape]:
    return {each.name: each for each in declared(SCHEMA, VIEWS, is_view=True)}


def information_shape(name: str) -> Shape:
    return information_shapes()[name]
