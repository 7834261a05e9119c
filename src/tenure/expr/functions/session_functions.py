"""Functions that read the session: current_user, current_database, settings; and pg_typeof.

The session answers through the Context: facts by name (`FACTS` has their defaults),
settings by a callable.

Walk: `expr.function_table` lists these; `sql.execution.session_facts` answers for the `FACTS`.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial

from tenure.base.errors import InvalidParameter, NotSupported, UndefinedObject
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.system_types import TYPE_OIDS, Reg

FACTS: dict[str, Datum] = {
    "user": "root",
    "session_user": "root",
    "database": "defaultdb",
    "schemas": ("public",),
    "temporary_schema": "",
    "pid": 0,
    "version": "PostgreSQL 18.0 (Tenure)",
    "transaction": 0,
    "started_at": None,
    "logical_timestamp": Decimal(0),
    "server_addr": None,
    "server_port": None,
    "client_addr": None,
    "client_port": None,
}
"""Every name that `Context.session` may have. `schemas` are those of the search path that exist, in order,
and `temporary_schema` that of the session's temporary objects;
`logical_timestamp` is the transaction's read timestamp; `started_at` when the node started."""

_NAMES = {
    **{"current_user": "user", "current_role": "user", "user": "user", "session_user": "session_user"},
    **{"current_catalog": "database", "current_database": "database"},
}
_PLAIN = {
    "version": ("text", "version"),
    "pg_backend_pid": ("int4", "pid"),
    "txid_current": ("int8", "transaction"),
    "pg_postmaster_start_time": ("timestamptz", "started_at"),
    "cluster_logical_timestamp": ("numeric", "logical_timestamp"),
    "inet_server_addr": ("text", "server_addr"),
    "inet_server_port": ("int4", "server_port"),
    "inet_client_addr": ("text", "client_addr"),
    "inet_client_port": ("int4", "client_port"),
}
_FIXED: dict[str, tuple[str, Datum]] = {
    "getdatabaseencoding": ("name", "UTF8"),
    "pg_notification_queue_usage": ("float8", 0.0),
    "pg_is_in_recovery": ("bool", False),
    "pg_jit_available": ("bool", False),
}


def functions() -> Iterator[Function]:
    stable = partial(Function, volatility=Volatility.STABLE, wants_context=True)
    for name, fact in _NAMES.items():
        yield stable(name, (), "name", _fact(fact))
    for name, (kind, fact) in _PLAIN.items():
        yield stable(name, (), kind, _fact(fact))
    for name, (kind, value) in _FIXED.items():
        yield Function(name, (), kind, lambda value=value: value)
    yield stable("current_schema", (), "name", lambda context: next(iter(fact_of(context, "schemas")), None))
    yield stable("current_schemas", ("bool",), "name[]", _schemas)
    yield stable("pg_client_encoding", (), "name", lambda context: _setting(context, "client_encoding"))
    yield stable("current_setting", ("text",), "text", _setting)
    yield stable("current_setting", ("text", "bool"), "text", _setting)
    volatile = partial(Function, volatility=Volatility.VOLATILE, wants_context=True)
    yield volatile("set_config", ("text", "text", "bool"), "text", _set_setting, is_strict=False)
    yield volatile("pg_export_snapshot", (), "text", _snapshot)
    yield volatile("pg_sleep", ("float8",), "void", _sleep)
    yield Function("pg_typeof", ("any",), "regtype", _type_of, is_strict=False, wants_types=True)
    yield function("pg_is_other_temp_schema", "oid -> bool", lambda oid: False)
    yield function("pg_size_pretty", "int8 -> text", _size)
    for name, wanted in (("num_nulls", True), ("num_nonnulls", False)):
        count = _count_nulls(wanted)
        yield Function(name, ("any",), "int4", count, is_strict=False, is_variadic=True)


def fact_of(context: Context, name: str) -> Datum:
    return context.session[name] if name in context.session else FACTS[name]


def _snapshot(context: Context) -> str:
    """The transaction's time: another that reads as of it sees the same."""
    return format(fact_of(context, "logical_timestamp"), "f")


def _fact(name: str) -> Callable[[Context], Datum]:
    return lambda context: fact_of(context, name)


def _schemas(context: Context, has_implicit: bool) -> Datum:
    schemas: tuple[str, ...] = tuple(fact_of(context, "schemas"))
    if not has_implicit:
        return schemas
    implicit = (str(fact_of(context, "temporary_schema")), "pg_catalog")
    return (*(each for each in implicit if each and each not in schemas), *schemas)


def _setting(context: Context, name: str, is_missing_ok: bool = False) -> str | None:
    value = context.setting(name) if context.setting else None
    if value is None and not is_missing_ok:
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
    return value


def _set_setting(context: Context, name: str | None, value: str | None, is_local: bool | None) -> str:
    if name is None:
        raise InvalidParameter("SET requires parameter name")
    if context.set_setting is None:
        raise NotSupported("set_config cannot be used here")
    return context.set_setting(name, value, bool(is_local))


def _sleep(context: Context, seconds: float) -> str:
    if context.sleep is None:
        raise NotSupported("pg_sleep cannot be used here")
    context.sleep(max(seconds, 0.0))
    return ""


def _type_of(kind: Type) -> Callable[[Datum], Reg]:
    reg = type_reg(kind)
    return lambda value: reg


UNKNOWN_OID = 705


def type_reg(kind: Type) -> Reg:
    """The type as a value of regtype; an enum has its descriptor's id."""
    if kind.family == "unknown":
        return Reg(UNKNOWN_OID, kind.family)
    element = kind.element if isinstance(kind, ArrayOf) else kind
    oids = TYPE_OIDS.get(element.ref.name, (element.ref.enum, 0))
    name = kind.sql_name.partition("(")[0] + kind.sql_name.partition(")")[2]
    return Reg(oids[1 if isinstance(kind, ArrayOf) else 0], name.replace("bpchar", "character"))


_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def _size(size: int) -> str:
    """In the smallest unit that needs fewer than five digits, rounded half away from zero."""
    if abs(size) < 10 * 1024:
        return f"{size} bytes"
    half_units, unit = abs(size) >> 9, 1
    while half_units >= 2 * 10 * 1024 and unit < len(_UNITS) - 1:
        half_units >>= 10
        unit += 1
    return f"{'-' if size < 0 else ''}{(half_units + 1) // 2} {_UNITS[unit]}"


def _count_nulls(wanted: bool) -> Callable[..., int]:
    return lambda *values: sum((each is None) is wanted for each in values)
