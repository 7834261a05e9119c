"""Set-returning functions about the catalog: pg_get_sequence_data, pg_options_to_table, pg_partition_tree.

Walk: `expr.set_function_table` lists these; `sql.tables.pg_catalog.answers` has what only the catalog knows.
"""

from collections.abc import Iterator, Sequence

from tenure.expr.functions.callback_functions import asking
from tenure.expr.functions.function import Context
from tenure.expr.functions.set_function import SetFunction, one_column
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import Reg

SEQUENCE_DATA = "pg_get_sequence_data"


def set_functions() -> Iterator[SetFunction]:
    extension = (("name", "name"), ("default_version", "text"), ("comment", "text"))
    yield SetFunction("pg_available_extensions", (), extension, lambda: ())
    option = (("option_name", "text"), ("option_value", "text"))
    yield SetFunction("pg_options_to_table", ("text[]",), option, _options)
    state = (("last_value", "int8"), ("is_called", "bool"), ("page_lsn", "text"))
    yield SetFunction(SEQUENCE_DATA, ("regclass",), state, _sequence_data, wants_context=True)
    # No table is a partition here.
    yield one_column("pg_partition_ancestors", "regclass -> regclass", lambda table: ())
    member = (("relid", "regclass"), ("parentrelid", "regclass"), ("isleaf", "bool"), ("level", "int4"))
    yield SetFunction("pg_partition_tree", ("regclass",), member, lambda table: ())


def _options(options: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    for each in options:
        name, equals, value = each.partition("=")
        yield name, value if equals else None


def _sequence_data(context: Context, relation: Reg) -> Iterator[Datum]:
    yield asking(SEQUENCE_DATA)(context, relation)
