"""Functions that a callback of the Context answers: advisory locks, notifications, sessions.

They are called by name through the Context, since they need layers above `expr`.

Walk: `expr.function_table` lists these; `sql.execution.session_facts` answers.
"""

from collections.abc import Callable, Iterator
from functools import partial

from tenure.base.errors import NotSupported
from tenure.expr.functions.function import Context, Function, Volatility
from tenure.expr.functions.set_function import SetFunction
from tenure.expr.types.datatype import Datum

_KEYS = (("int8",), ("int4", "int4"))
LIVENESS = "tenure_sql_liveness_is_alive"


def functions() -> Iterator[Function]:
    for name, result in (
        ("pg_advisory_lock", "void"),
        ("pg_advisory_lock_shared", "void"),
        ("pg_advisory_xact_lock", "void"),
        ("pg_advisory_xact_lock_shared", "void"),
        ("pg_try_advisory_lock", "bool"),
        ("pg_try_advisory_lock_shared", "bool"),
        ("pg_try_advisory_xact_lock", "bool"),
        ("pg_try_advisory_xact_lock_shared", "bool"),
        ("pg_advisory_unlock", "bool"),
        ("pg_advisory_unlock_shared", "bool"),
    ):
        for arguments in _KEYS:
            yield _callback(name, arguments, result)
    yield _callback("pg_advisory_unlock_all", (), "void")
    volatile = partial(Function, volatility=Volatility.VOLATILE, is_strict=False, wants_context=True)
    yield volatile("pg_notify", ("text", "text"), "void", _notify)
    yield _callback(LIVENESS, ("bytea",), "bool")
    yield _callback("pg_cancel_backend", ("int4",), "bool")
    yield _callback("pg_terminate_backend", ("int4",), "bool")
    yield _callback("pg_terminate_backend", ("int4", "int8"), "bool")


def set_functions() -> Iterator[SetFunction]:
    channels = asking("pg_listening_channels")
    yield SetFunction(
        "pg_listening_channels",
        (),
        (("pg_listening_channels", "text"),),
        lambda context: ((each,) for each in channels(context)),
        wants_context=True,
    )


def _notify(context: Context, channel: str | None, payload: str | None) -> Datum:
    return asking("pg_notify")(context, channel or "", payload or "")


def _callback(name: str, arguments: tuple[str, ...], result: str) -> Function:
    return Function(name, arguments, result, asking(name), Volatility.VOLATILE, wants_context=True)


def asking(name: str) -> Callable[..., Datum]:
    def ask(context: Context, *arguments: Datum) -> Datum:
        if None in arguments:
            return None
        if context.ask is None:
            raise NotSupported(f"{name} cannot be used here")
        return context.ask(name, arguments)

    return ask
