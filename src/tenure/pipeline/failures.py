"""Errors of kernels as values, so that they keep their class when they come from another process.

    kernel raises ──► Failure.of(error) ──► a picklable value ──► Failure.error() ──► raised by the driver

An error of our own tree keeps its class, SQLSTATE, hint and detail: the caller sees the same as if the kernel
had run in this process. Any other is a bug in the kernel; it becomes a `KernelFailed` with the traceback in
its detail.

Walk: `pipeline.tasks` and `pipeline.spark_tasks` make them where a kernel runs, and raise them in the driver.
"""

import pickle
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from tenure.base.errors import KernelFailed, TenureError

TRACEBACK_CHARS_MAX = 4_000
"""The end of a traceback says what was raised and where; a deep recursion would fill megabytes."""


class Failure(NamedTuple):
    kind: type[TenureError]
    arguments: tuple[Any, ...]
    fields: dict[str, Any]

    @classmethod
    def of(cls, error: Exception, kernel: Callable[..., object]) -> "Failure":
        if not isinstance(error, TenureError):
            error = failed(error, kernel)
        fields = {name: value for name, value in error.__dict__.items() if _is_picklable(value)}
        return cls(type(error), tuple(map(str, error.args)), fields)

    def error(self) -> TenureError:
        # Not by its constructor, whose parameters differ from class to class.
        error = self.kind.__new__(self.kind, *self.arguments)
        error.__dict__.update(self.fields)
        return error


def failed(error: Exception, kernel: Callable[..., object]) -> KernelFailed:
    name = f"{kernel.__module__}.{getattr(kernel, '__qualname__', type(kernel).__name__)}"
    message = f'kernel "{name}" failed: {type(error).__name__}: {error}'
    lines = "".join(traceback.format_exception(error))
    return KernelFailed(message, detail=lines[-TRACEBACK_CHARS_MAX:].strip())


def said_by(error: Exception) -> str:
    """The message of an error, if need be fetched from the Java that raised it; never empty."""
    try:
        java = getattr(error, "java_exception", None)
        text = str(error) if java is None else str(java.getMessage())
    except Exception:  # that Java is gone
        text = ""
    return text.strip() or type(error).__name__


def _is_picklable(value: object) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # a foreign __reduce__ may raise anything
        return False
    return True
