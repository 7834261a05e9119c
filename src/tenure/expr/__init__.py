"""Types and typed expressions: column defaults, CHECKs, index predicates and what SQL evaluates.

Walk: `table` and `sql` use what is exported here; this uses `catalog` for data and `kv` for key order.
"""

from tenure.expr.functions.function import Context, Volatility
from tenure.expr.tree.compiled import Evaluate, Row, check, compile, require_immutable, volatility
from tenure.expr.tree.expressions import Node, columns, decode, encode, to_stored
from tenure.expr.tree.sql_text import render
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.interval import Interval
from tenure.expr.types.json_values import Json, Jsonb
from tenure.expr.types.type_names import parse_type_name, type_of

__all__ = [
    "Context",
    "Datum",
    "Evaluate",
    "Interval",
    "Json",
    "Jsonb",
    "Node",
    "Row",
    "Type",
    "Volatility",
    "check",
    "columns",
    "compile",
    "decode",
    "encode",
    "parse_type_name",
    "render",
    "require_immutable",
    "to_stored",
    "type_of",
    "volatility",
]
