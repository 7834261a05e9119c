"""The options of COPY: format, delimiters, header, encoding.

Walk: `statements.dml.copy` reads a statement's options with `copy_format`.
"""

from collections.abc import Collection

from tenure.base.errors import DuplicateColumn, InvalidParameter, NotSupported, SyntaxFault, UndefinedColumn
from tenure.expr.types.encodings import Encoding, encoding_named, encoding_number
from tenure.sql.session.answers import CopyFormat
from tenure.sql.text.copy_text import Format
from tenure.sql.text.parse import Tree, child, items, kind, names


def copy_format(tree: Tree, columns: list[str]) -> tuple[Format, CopyFormat]:
    options = {each.defname: child(each, "arg") for each in items(tree.options)}
    how = _how(_word(options.pop("format")) if "format" in options else "text")
    is_csv = how is CopyFormat.CSV
    _check_csv_options(options, is_csv=is_csv, is_from=tree.is_from)
    found: dict[str, object] = {"is_csv": is_csv, "force_quote": frozenset()}
    if is_csv:
        found |= {"delimiter": ",", "null": ""}
    for name, value in options.items():
        match name:
            case "delimiter" | "quote" | "escape":
                found[name] = _character(name, _word(value))
                if name == "quote" and "escape" not in options:
                    found["escape"] = found["quote"]
            case "null":
                found["null"] = _word(value)
            case "header":
                found["has_header"] = _is_on(value)
                found["must_match"] = value is not None and _word(value).lower() == "match"
            case "encoding":
                found["encoding"] = _encoding_named(_word(value))
            case "force_quote" | "force_null" | "force_not_null":
                found[name] = _positions(value, columns)
            case "freeze" | "oids":
                pass
            case _:
                raise SyntaxFault(f'option "{name}" not recognized')
    return Format(**found), how  # type: ignore[arg-type]


def _encoding_named(name: str) -> Encoding:
    if encoding_number(name) < 0:
        raise InvalidParameter('argument to option "encoding" must be a valid encoding name')
    encoding = encoding_named(name)
    if not encoding.is_converted:
        raise encoding.refusal()
    return encoding


def _check_csv_options(options: Collection[str], *, is_csv: bool, is_from: bool) -> None:
    for name in ("quote", "escape", "force_quote", "force_not_null", "force_null"):
        if name not in options:
            continue
        if not is_csv:
            raise NotSupported(f"COPY {name.upper()} requires CSV mode")
        if name == "force_quote" and is_from:
            raise NotSupported("COPY FORCE_QUOTE cannot be used with COPY FROM")
        if name in ("force_not_null", "force_null") and not is_from:
            raise InvalidParameter(f"COPY {name.upper()} cannot be used with COPY TO")


def _how(name: str) -> CopyFormat:
    try:
        return CopyFormat(name)
    except ValueError:
        raise InvalidParameter(f'COPY format "{name}" not recognized') from None


def _word(value: Tree) -> str:
    if kind(value) == "String":
        return str(value.sval)
    if kind(value) in ("Integer",):
        return str(value.ival)
    if kind(value) == "Boolean":
        return "true" if value.boolval else "false"
    raise InvalidParameter("COPY: an option needs a word or a string")


def _character(name: str, text: str) -> str:
    if len(text.encode()) != 1:
        raise NotSupported(f"COPY {name} must be a single one-byte character")
    if text in "\r\n":
        raise InvalidParameter(f"COPY {name} cannot be newline or carriage return")
    return text


def _is_on(value: Tree | None) -> bool:
    return value is None or _word(value).lower() in ("true", "on", "1", "match")


def _positions(value: Tree, columns: list[str]) -> frozenset[int]:
    if kind(value) == "A_Star":
        return frozenset(range(len(columns)))
    positions: set[int] = set()
    for name in names(value.items):
        if name not in columns:
            raise UndefinedColumn(f'column "{name}" does not exist')
        if columns.index(name) in positions:
            raise DuplicateColumn(f'column "{name}" specified more than once')
        positions.add(columns.index(name))
    return frozenset(positions)
