"""How large the result of a statement has become: a cheap guess that is not far from what is sent.

Only what can be long is measured, value by value; everything else counts as eight bytes.

Invariant (S28): a statement whose result grows beyond `sql.result_bytes_max` is ended (54000).

Walk: `sql.execution.portal_runs` calls `check` after each batch of rows.
"""

from collections.abc import Sequence

from tenure.base.errors import LimitExceeded
from tenure.base.settings import RESULT_BYTES_MAX, Settings
from tenure.base.sizes import size_of
from tenure.expr.types.datatype import Datum
from tenure.sql.session.answers import ResultColumn

TEXTS = ("text", "varchar", "bpchar", "bytea", "name")
FIXED = (
    *("int2", "int4", "int8", "float4", "float8", "bool", "uuid", "oid"),
    *("date", "time", "timestamp", "timestamptz"),
)
VALUE_BYTES = 8


def bytes_of(rows: Sequence[Sequence[Datum]], columns: Sequence[ResultColumn]) -> int:
    total = VALUE_BYTES * len(rows) * len(columns)
    for place, column in enumerate(columns):
        family = column.type.family
        if family in TEXTS:
            values = [row[place] for row in rows]
            total += sum([len(value) for value in values if isinstance(value, str | bytes)])
        elif family not in FIXED:
            total += sum([size_of(row[place]) for row in rows])
    return total


def check(size_bytes: int, settings: Settings) -> None:
    limit = settings[RESULT_BYTES_MAX]
    if size_bytes > limit:
        raise LimitExceeded(
            f"the result of the statement is larger than {limit} bytes",
            hint="Ask for less, or for a part at a time; sql.result_bytes_max is the limit.",
        )
