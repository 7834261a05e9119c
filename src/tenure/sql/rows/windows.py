"""Window functions: each row gets values computed from the rows around it.

    partition      rows with equal PARTITION BY values
    peers          rows of a partition that ORDER BY does not tell apart
    frame          the rows that a function looks at from its row: a range of the sorted partition

Calls with the same PARTITION BY and ORDER BY share one sort. An aggregate over a frame that only
grows goes one step on for each row; over other frames it is computed anew where the frame changes.

Walk: `sql.rows.runner` makes these; `sql.rows.window_frames` finds the frames;
`expr.aggregates.window_functions` and `expr.aggregates.aggregate_table` have the functions.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tenure.base.memory import Holding
from tenure.base.sizes import ROW_BYTES, size_of
from tenure.expr.aggregates.aggregate_table import aggregate_with_id
from tenure.expr.aggregates.window_functions import WINDOW_FUNCTIONS
from tenure.expr.aggregates.window_functions import Window as Surroundings
from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Type
from tenure.sql.plans.plan import SortKey, Window, WindowCall
from tenure.sql.rows.groups import collects
from tenure.sql.rows.ordering import key_of, sorter
from tenure.sql.rows.run import Compiler, QueryRun, RowNode, Rows, Tuple, gather, types_of
from tenure.sql.rows.window_frames import Frames, peers_of

BEYOND = 1 << 62
"""A position beyond every frame: the next row starts a new aggregation."""

CALL_BYTES = 64
"""Bytes of a window function's value with its argument and frame."""

_FUNCTIONS = {function.id: function for function in WINDOW_FUNCTIONS}


class WindowRows(RowNode):
    def __init__(self, plan: Window, compiler: Compiler) -> None:
        self.plan: Window = plan
        self._input = compiler.node(plan.input)
        types = types_of(plan.input.outputs)
        # Trees cannot be hashed: the constants in them may be lists.
        specs: list[tuple[WindowCall, list[int]]] = []
        for place, call in enumerate(plan.calls):
            alike = (
                places for of, places in specs if (of.partition, of.order) == (call.partition, call.order)
            )
            places = next(alike, None)
            if places is None:
                specs.append((call, [place]))
            else:
                places.append(place)
        self._specs = [
            _Spec(of, [(place, plan.calls[place]) for place in places], types, compiler)
            for of, places in specs
        ]

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        width, count = len(self.plan.input.outputs), len(self.plan.calls)
        with run.memory.holding("a window") as holding:
            rows = gather(run, self._input.start(run), holding)
            for spec in self._specs:
                # Values of other specs stand behind the row, where the sort carries them along.
                holding.hold_bytes(len(rows) * (ROW_BYTES + CALL_BYTES * len(spec.places)))
                rows = spec.computed(run, rows, holding)
            order = [place for spec in self._specs for place in spec.places]
            if order == list(range(count)):
                yield from rows
                return
            placed = [width + order.index(place) for place in range(count)]
            yield from ((*row[:width], *[row[place] for place in placed]) for row in rows)


class _Spec:
    """One PARTITION BY and ORDER BY, and the calls over it."""

    def __init__(
        self,
        of: WindowCall,
        calls: Sequence[tuple[int, WindowCall]],
        types: Mapping[int, Type],
        compiler: Compiler,
    ) -> None:
        partition, order = of.partition, of.order
        self.places = [place for place, _ in calls]
        keys = [*(SortKey(node) for node in partition), *order]
        self._sort = sorter(keys, types, compiler)
        self._partition = key_of(partition, types, compiler) if partition else None
        self._peer = key_of([key.node for key in order], types, compiler) if order else None
        self._calls = [_Call(call, order, types, compiler) for _, call in calls]

    def computed(self, run: QueryRun, rows: list[Tuple], holding: Holding) -> list[Tuple]:
        """The rows, sorted, each with the values of the calls behind it."""
        done: list[Tuple] = []
        for part in self._partitions(self._sort(rows, run.context), run.context):
            run.check()
            peers = peers_of(part, self._peer, run.context)
            columns = [call.column(run, part, peers, holding) for call in self._calls]
            done += [(*row, *values) for row, values in zip(part, zip(*columns, strict=True), strict=True)]
        return done

    def _partitions(self, rows: list[Tuple], context: Context) -> Iterator[list[Tuple]]:
        partition = self._partition
        if partition is None:
            if rows:
                yield rows
            return
        for _, part in groupby(rows, key=lambda row: partition(row, context)):
            yield list(part)


class _Call:
    def __init__(
        self,
        call: WindowCall,
        order: tuple[SortKey, ...],
        types: Mapping[int, Type],
        compiler: Compiler,
    ) -> None:
        self._call = call
        self._arguments = [compiler.evaluate(node, types) for node in call.arguments]
        self._types = [compiler.type_of(node, types) for node in call.arguments]
        self._condition = None if call.condition is None else compiler.evaluate(call.condition, types)
        self._frames = Frames(call.frame, order, types, compiler)

    def column(
        self, run: QueryRun, part: list[Tuple], peers: Sequence[tuple[int, int]], holding: Holding
    ) -> Sequence[Any]:
        """The value for each row of a partition."""
        context = run.context
        columns = [[evaluate(row, context) for row in part] for evaluate in self._arguments]
        frames = self._frames.of(run, part, peers)
        if not self._call.is_aggregate:
            return _FUNCTIONS[self._call.function].run(Surroundings(peers, frames), *columns)
        arguments = list(zip(*columns, strict=True)) if columns else [()] * len(part)
        counts = self._counting(part, arguments, context)
        return self._aggregated(run, arguments, counts, frames, holding)

    def _counting(self, part: list[Tuple], arguments: list[Any], context: Context) -> list[bool]:
        """Which rows the aggregate sees."""
        is_strict = aggregate_with_id(self._call.function).is_strict
        counting = [not (is_strict and None in values) for values in arguments]
        condition = self._condition
        if condition is None:
            return counting
        return [each and condition(row, context) is True for each, row in zip(counting, part, strict=True)]

    def _aggregated(
        self,
        run: QueryRun,
        arguments: list[Any],
        counts: list[bool],
        frames: Sequence[Sequence[int]],
        holding: Holding,
    ) -> list[Any]:
        aggregate = aggregate_with_id(self._call.function)
        start, step, finish = aggregate.steps(self._types, run.context)
        grows_with_frame = collects(aggregate)
        results: list[Any] = []
        state, done, last_frame = start(), 0, None
        for frame in frames:
            if last_frame is None or frame != last_frame:
                grows = isinstance(frame, range) and frame.start == 0 and frame.stop >= done
                if not grows:
                    state, done = start(), 0
                    run.check()
                for place in frame[done:]:
                    if counts[place]:
                        state = step(state, *arguments[place])
                # Only a frame that begins with the partition can be extended.
                done = len(frame) if isinstance(frame, range) and frame.start == 0 else BEYOND
                last_frame, value = frame, finish(state)
                if grows_with_frame:
                    holding.add_bytes(size_of(value))
            results.append(value)
        return results
