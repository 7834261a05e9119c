"""Mutants of the store: known mistakes, put into product code, that the predicates must catch.

Each swaps a function for a wrong one while its seeds run, and may name a workload profile that
meets the mistake often enough. One that survives says that the simulator is blind there.

Walk: `__main__ --mutants` -> `hunt` for each of `MUTANTS`; the wrong functions are in `mistakes`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from tests.simulation import (
    cluster,
    edge_mistakes,
    emptying_mistakes,
    job_mistakes,
    lake_mistakes,
    mistakes,
    retention_mistakes,
    right_mistakes,
    schema_lock_mistakes,
    schema_mistakes,
    upgrade_mistakes,
    view_mistakes,
)
from tests.simulation.cluster import Result
from tests.simulation.knobs import Knobs

SEEDS_MAX = 500


class Mutant(NamedTuple):
    name: str
    swaps: tuple[tuple[Any, str, Any], ...]
    """What is swapped: an owner (module, class or dict), a name, and what stands there instead."""
    profile: str = "all"
    change: Callable[[Knobs], None] | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, wrong in self.swaps:
                stack.enter_context(_swapped(owner, name, wrong))
            yield


@contextmanager
def _swapped(owner: Any, name: str, wrong: Any) -> Iterator[None]:
    if isinstance(owner, dict):
        former = owner[name]
        owner[name] = wrong
    else:
        former = owner.__dict__[name]
        setattr(owner, name, wrong)
    try:
        yield
    finally:
        if isinstance(owner, dict):
            owner[name] = former
        else:
            setattr(owner, name, former)


def named(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


def hunt(mutant: Mutant, *, seeds: range, seconds: float = 60.0, nodes: int = 3) -> tuple[int, Result | None]:
    """Runs seeds until a predicate is violated; returns how many it took and the last result."""
    with mutant.applied():
        for count, seed in enumerate(seeds, start=1):
            result = cluster.run(
                seed, seconds=seconds, nodes=nodes, profile=mutant.profile, change=mutant.change
            )
            if result.violations:
                return count, result
    return len(seeds), None


MUTANTS: tuple[Mutant, ...] = tuple(
    Mutant(*each)
    for each in (
        *mistakes.ALL,
        *job_mistakes.ALL,
        *upgrade_mistakes.ALL,
        *schema_mistakes.ALL,
        *right_mistakes.ALL,
        *schema_lock_mistakes.ALL,
        *emptying_mistakes.ALL,
        *lake_mistakes.ALL,
        *retention_mistakes.ALL,
        *edge_mistakes.ALL,
        *view_mistakes.ALL,
    )
)
