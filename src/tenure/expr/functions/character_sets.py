"""Text in other encodings: convert_to('ß', 'LATIN1') and back.

Walk: `expr.function_table` lists these; `expr.types.encodings` converts.
"""

from collections.abc import Iterator

from tenure.expr.functions.function import Function, function
from tenure.expr.types.encodings import encoding_name, encoding_named, encoding_number


def functions() -> Iterator[Function]:
    yield function("pg_encoding_to_char", "int4 -> name", encoding_name)
    yield function("pg_char_to_encoding", "name -> int4", encoding_number)
    yield function("convert_from", "bytea, text -> text", _convert_from)
    yield function("convert_to", "text, text -> bytea", _convert_to)


def _convert_from(data: bytes, name: str) -> str:
    return encoding_named(name).decode(data)


def _convert_to(text: str, name: str) -> bytes:
    return encoding_named(name).encode(text)
