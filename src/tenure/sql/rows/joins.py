"""Joins: by hash where the condition has an equality, else each with each.

    hash       the right rows are held in a table by the joined values; each left row looks them up
    lateral    the right side is run for each left row, which gives it values: also a lookup by index
    loop       the right rows are held and all tried

Rows come in the order of the left side; right rows without a match (RIGHT, FULL) come last.

Invariant (join-equal): rows match by PostgreSQL's equality: 1.0 = 1.00, NULL equals nothing.

Walk: `sql.rows.runner` makes these; `sql.plans.trees` finds the equalities.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

from tenure.base.memory import Holding
from tenure.sql.plans.plan import Join, JoinKind
from tenure.sql.plans.trees import conjoined, conjuncts, equated
from tenure.sql.rows.ordering import KeyOf, key_of
from tenure.sql.rows.run import Compiler, QueryRun, RowNode, Rows, Tuple, batches, gather, types_of

Candidates: TypeAlias = Callable[[Tuple], Iterable[Tuple]]
"""The right rows that a left row has to be tried with."""

MANY = 100
"""From so many right rows on, a run is checked at each left row."""

_NEEDS_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


class JoinRows(RowNode):
    def __init__(self, plan: Join, compiler: Compiler) -> None:
        self.plan: Join = plan
        self._left, self._right = compiler.node(plan.left), compiler.node(plan.right)
        left, right = types_of(plan.left.outputs), types_of(plan.right.outputs)
        conditions = conjuncts(plan.condition)
        equal = [None if plan.lateral else equated(part, len(left)) for part in conditions]
        pairs = [pair for pair in equal if pair is not None]
        self._left_key, self._right_key = None, None
        if pairs:
            self._left_key = key_of([pair[0] for pair in pairs], left, compiler)
            self._right_key = key_of([pair[1] for pair in pairs], right, compiler)
        self._has_many_keys = len(pairs) > 1
        rest = conjoined([part for part, pair in zip(conditions, equal, strict=True) if pair is None])
        both = types_of((*plan.left.outputs, *plan.right.outputs))
        self._condition = None if rest is None else compiler.evaluate(rest, both)
        self._no_left, self._no_right = (None,) * len(left), (None,) * len(right)

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        if self.plan.lateral:
            return self._joined(run, self._left.start(run), self._lateral(run), None)
        return self._with_right_held(run)

    def _lateral(self, run: QueryRun) -> Candidates:
        # The right side differs for each left row, so DuckDB cannot take it over.
        run, right, lateral = replace(run, instead=None), self._right, self.plan.lateral

        def candidates(row: Tuple) -> Rows:
            for number, position in lateral:
                run.context_values[number] = row[position]
            return right.start(run)

        return candidates

    def _with_right_held(self, run: QueryRun) -> Rows:
        left = self._left.start(run)
        if self.plan.kind in _NEEDS_LEFT:
            first = next(left, None)
            if first is None:
                return
            left = chain((first,), left)
        with run.memory.holding("a join") as holding:
            rights = gather(run, self._right.start(run), holding)
            matched: set[int] | None = set() if self.plan.kind not in _NEEDS_LEFT else None
            if self._right_key is not None and self._left_key is not None:
                table = self._table(run, rights, self._right_key, holding)
                if self.plan.kind is JoinKind.INNER and self._condition is None:
                    yield from self._only_hashed(run, left, table, self._left_key)
                    return
                candidates = _asking(run, table, self._left_key)
            else:
                candidates = _all_of(run, rights)
            yield from self._joined(run, left, candidates, matched)
            if matched is not None:
                # Rows that are the same object have matched, or not, together.
                yield from (self._no_left + row for row in rights if id(row) not in matched)

    def _table(
        self, run: QueryRun, rights: Sequence[Tuple], key: KeyOf, holding: Holding
    ) -> dict[Any, list[Tuple]]:
        table: defaultdict[Any, list[Tuple]] = defaultdict(list)
        context = run.context
        for batch in batches(run, rights):
            for row in batch:
                table[key(row, context)].append(row)
            holding.hold_bytes(TABLE_ROW_BYTES * len(batch))
        if self._has_many_keys:
            return {each: rows for each, rows in table.items() if None not in each}
        table.pop(None, None)
        table.default_factory = None
        return table

    def _only_hashed(
        self, run: QueryRun, left: Rows, table: dict[Any, list[Tuple]], key: KeyOf
    ) -> Iterator[Tuple]:
        context, find, nothing = run.context, table.get, ()
        for row in left:
            for right in find(key(row, context), nothing):
                yield row + right

    def _joined(
        self, run: QueryRun, left: Iterable[Tuple], candidates: Candidates, matched: set[int] | None
    ) -> Rows:
        kind = self.plan.kind
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            is_semi = kind is JoinKind.SEMI
            return (row for row in left if self._has_match(run, row, candidates(row)) is is_semi)
        return self._pairs(run, left, candidates, matched)

    def _has_match(self, run: QueryRun, row: Tuple, rights: Iterable[Tuple]) -> bool:
        condition, context = self._condition, run.context
        return any(condition is None or condition(row + right, context) is True for right in rights)

    def _pairs(
        self, run: QueryRun, left: Iterable[Tuple], candidates: Candidates, matched: set[int] | None
    ) -> Rows:
        condition, context = self._condition, run.context
        fills_right = self.plan.kind in (JoinKind.LEFT, JoinKind.FULL)
        for row in left:
            is_alone = True
            for right in candidates(row):
                both = row + right
                if condition is None or condition(both, context) is True:
                    is_alone = False
                    if matched is not None:
                        matched.add(id(right))
                    yield both
            if is_alone and fills_right:
                yield row + self._no_right


TABLE_ROW_BYTES = 100
"""Bytes of a row in a hash table besides itself: its entry, its key, its list."""


def _asking(run: QueryRun, table: dict[Any, list[Tuple]], key: KeyOf) -> Candidates:
    context = run.context

    def candidates(row: Tuple) -> list[Tuple]:
        found = table.get(key(row, context), [])
        if len(found) > MANY:
            run.check()
        return found

    return candidates


def _all_of(run: QueryRun, rights: list[Tuple]) -> Candidates:
    def candidates(row: Tuple) -> list[Tuple]:
        if len(rights) > MANY:
            run.check()
        return rights

    return candidates
