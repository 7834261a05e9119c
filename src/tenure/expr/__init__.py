"""Types and typed expressions: column defaults, CHECKs, index predicates and what SQL evaluates.

Walk: `table` and `sql` use what is exported here; this uses `catalog` for data and `kv` for key order.
"""

from tenure.expr.datatype import Datum, Type
from tenure.expr.interval import Interval
from tenure.expr.json_values import Json, Jsonb
from tenure.expr.types import parse_type_name, type_of

__all__ = ["Datum", "Interval", "Json", "Jsonb", "Type", "parse_type_name", "type_of"]
