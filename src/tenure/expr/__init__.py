"""Types and typed expressions: column defaults, CHECKs, index predicates and what SQL evaluates.

Walk: `table` and `sql` use what is exported here; this uses `catalog` for data and `kv` for key order.
"""

from tenure.expr.compiled import Evaluate, Row, check, compile, require_immutable, volatility
from tenure.expr.datatype import Datum, Type
from tenure.expr.expressions import Node, columns, decode, encode, to_stored
from tenure.expr.function import Context, Volatility
from tenure.expr.interval import Interval
from tenure.expr.json_values import Json, Jsonb
from tenure.expr.sql_text import render
from tenure.expr.types import parse_type_name, type_of

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
