"""Names and values as SQL writes them: quote_ident, quote_literal and the words that need quotes.

Walk: `expr.functions.text_joining` lists the functions; modules that write SQL text use `quote_ident`.
"""

import re

from tenure.expr.types.text_slices import replaced

_WORDS = """
all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both
case cast char character check coalesce collate collation column concurrently constraint create cross
current_catalog current_date current_role current_schema current_time current_timestamp current_user dec
decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign
freeze from full grant greatest group grouping having ilike in initially inner inout int integer
intersect interval into is isnull join json json_array json_arrayagg json_exists json_object
json_objectagg json_query json_scalar json_serialize json_table json_value lateral leading least left
like limit localtime localtimestamp merge_action national natural nchar none normalize not notnull null
nullif numeric offset on only or order out outer overlaps overlay placing position precision primary real
references returning right row select session_user setof similar smallint some substring symmetric
system_user table tablesample then time timestamp to trailing treat trim true union unique user using
values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists
xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
RESERVED = frozenset(_WORDS.split())
"""All keywords of PostgreSQL 18 that are not unreserved; a test compares them."""

_PLAIN = re.compile("[a-z_][a-z0-9_]*")


def quote_ident(name: str) -> str:
    if _PLAIN.fullmatch(name) and name not in RESERVED:
        return name
    return '"' + replaced(name, '"', '""') + '"'


def quote_literal(text: str) -> str:
    doubled = replaced(text, "'", "''")
    quoted = f"'{doubled}'"  # one copy, where + would make two
    return "E" + replaced(quoted, "\\", "\\\\") if "\\" in text else quoted
