"""The definition of a set-returning function: a call that gives rows.

    function, targets = resolve_set("generate_series", types)
    for row in function.rows(types, context, *values): ...      row: a tuple of the columns

Walk: the modules of each family list theirs; `expr.set_function_table` gathers them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Datum, Type


@dataclass(frozen=True, slots=True)
class SetFunction:
    name: str
    arguments: tuple[str, ...]
    results: tuple[tuple[str, str], ...]
    """Name and family of each column; the name of a lone one is the function's, unless it has its own."""
    run: Callable[..., Datum]
    is_strict: bool = True
    """No rows if any argument is NULL."""
    is_variadic: bool = False
    wants_types: bool = False
    wants_context: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}({','.join(self.arguments)})"

    def rows(self, types: Sequence[Type], context: Context, *values: Datum) -> Iterable[tuple[Datum, ...]]:
        """The rows of one call; made as they are asked for."""
        if self.is_strict and any(each is None for each in values):
            return ()
        run: Callable[..., Datum] = self.run(*types) if self.wants_types else self.run
        result: Iterable[tuple[Datum, ...]] = run(context, *values) if self.wants_context else run(*values)
        return result


def one_column(
    name: str, signature: str, run: Callable[..., Iterable[Datum]], *, column: str = ""
) -> SetFunction:
    """one_column("generate_series", "int4, int4 -> int4", ...): `run` gives bare values."""
    arguments, _, result = signature.partition("->")
    families = tuple(arguments.replace(",", " ").split())
    return SetFunction(
        name,
        families,
        ((column or name, result.strip()),),
        lambda *values: ((each,) for each in run(*values)),
    )
