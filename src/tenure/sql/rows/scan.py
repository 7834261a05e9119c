"""Where rows come from: tables along an index, system tables, values written out, functions.

    Access         prefix a = 1, b IN (2, 3); c > 4      two spans of the index (a, b, c)
      is_point     every column of a unique index        keys, each looked up

A secondary index gives the keys of the rows, which are read one by one; its entries are enough where
they hold all columns that are wanted. Without a limit the store
is read in its own pages; with one, in pages that begin at that size and grow, so that LIMIT 1 reads,
and depends on, one row.

Invariant (scan-null): a comparison is never true of NULL, so a bound leaves out the NULLs of an index.

Walk: `sql.rows.runner` makes these; they read by `table.rows` layouts.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, product, starmap, zip_longest
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from tenure.base.errors import CorruptData
from tenure.expr.set_function_table import SET_FUNCTIONS
from tenure.expr.tree.closures import Evaluate
from tenure.expr.types.arrays import flatten
from tenure.kv.keys import Span
from tenure.sql.plans.plan import Access, Among, FunctionScan, ProjectSet, Scan, SetCall, Values, Virtual
from tenure.sql.plans.plan import SpanEnd as PlanBound
from tenure.sql.rows.repeated_scans import repeated_scan
from tenure.sql.rows.run import BATCH_ROWS, Compiler, QueryRun, RowNode, Rows, Tuple, batches, types_of
from tenure.table.compiled_index import CompiledIndex, ScanBound
from tenure.table.readers import Read
from tenure.table.rows import IndexEntry, Layout

_SET_FUNCTIONS = {function.id: function for function in SET_FUNCTIONS}

Entries: TypeAlias = Iterator[tuple[bytes, bytes]]
"""Keys and values of an index."""

PAGE_GROWTH = 4
"""How much larger each next page is, of a scan that began with few rows."""


class ScanRows(RowNode):
    def __init__(self, plan: Scan, compiler: Compiler) -> None:
        self.plan: Scan = plan
        types = types_of(plan.outputs)
        self._condition = None if plan.condition is None else compiler.evaluate(plan.condition, types)
        self._access = _CompiledAccess(plan.access or Access(plan.table.primary), compiler)
        self._repeated = repeated_scan(plan, types, compiler)

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        if self._repeated is None:
            rows: Iterable[Tuple] = self._read(run, wanted)
        else:
            rows = self._repeated.rows(run, lambda: self._read(run, wanted))
        condition, context = self._condition, run.context
        if condition is None:
            return iter(rows)
        return (row for row in rows if condition(row, context) is True)

    def _read(self, run: QueryRun, wanted: int | None) -> Rows:
        layout = run.layouts(self.plan.table)
        keyed = layout.indexes[self._access.index]
        assert keyed.is_public, f'index "{keyed.name}" cannot be relied upon'
        entries = self._entries(run, keyed, wanted)
        return starmap(*_reading(run, layout, keyed, self.plan.columns, entries))

    def _entries(self, run: QueryRun, keyed: CompiledIndex, wanted: int | None) -> Entries:
        access, is_reverse = self._access, self.plan.is_reverse
        if access.is_whole:
            return _scan(run, keyed.span(), is_reverse, wanted)
        prefixes = access.prefixes(run)
        if len(prefixes) > 1:
            # In the order of the index, and each only once.
            prefixes = [entry[1] for entry in sorted({keyed.prefix(each): each for each in prefixes}.items())]
        if is_reverse:
            prefixes.reverse()
        if access.is_point:
            return _points(run, [keyed.prefix(each) for each in prefixes], wanted)
        spans = (access.span(run, keyed, prefix) for prefix in prefixes)
        return chain.from_iterable(_scan(run, span, is_reverse, wanted) for span in spans if span is not None)


def _points(run: QueryRun, keys: list[bytes], wanted: int | None) -> Entries:
    """Several are read together: each read of a store in PostgreSQL is a round trip."""
    first, size = 0, BATCH_ROWS if wanted is None else max(1, min(wanted, BATCH_ROWS))
    while batch := keys[first : first + size]:
        if len(batch) > 1:
            run.source.read_ahead(batch)
        for key in batch:
            value = run.source.get(key)
            if value is not None:
                if run.read is not None:
                    run.read(len(value))
                yield key, value
        first, size = first + size, min(size * PAGE_GROWTH, BATCH_ROWS)


def _scan(run: QueryRun, span: Span, is_reverse: bool, wanted: int | None) -> Entries:
    if wanted is not None and wanted < BATCH_ROWS:
        return _growing(run, span, is_reverse, max(1, wanted))
    return chain.from_iterable(batches(run, run.source.scan(span, reverse=is_reverse)))


def _growing(run: QueryRun, span: Span, is_reverse: bool, size: int) -> Entries:
    lo, hi = span
    while True:
        run.check()
        page = list(run.source.scan(Span(lo, hi), reverse=is_reverse, limit=size))
        yield from page
        if len(page) < size:
            return
        lo, hi = (lo, page[-1][0]) if is_reverse else (page[-1][0] + b"\0", hi)
        size = min(size * PAGE_GROWTH, BATCH_ROWS)


def _reading(
    run: QueryRun, layout: Layout, keyed: CompiledIndex, columns: tuple[int, ...], entries: Entries
) -> tuple[Read, Entries]:
    """The function that makes the rows, and the entries it needs: those of a secondary index may be
    enough."""
    if keyed.is_primary:
        return layout.reader(keyed, columns), entries
    read = layout.entry_reader(keyed, columns)
    if read is not None:
        return read, entries
    return layout.reader(layout.indexes[keyed.primary], columns), _followed(run, layout, keyed, entries)


def _followed(run: QueryRun, layout: Layout, keyed: CompiledIndex, entries: Entries) -> Entries:
    """The rows that the entries of a secondary index point to."""
    for entry in entries:
        key = layout.primary_key(keyed, IndexEntry(*entry))
        value = run.source.get(key)
        if value is None:
            raise CorruptData(
                f'index "{keyed.name}" of table "{layout.table.name}" points to a row that is gone'
            )
        if run.read is not None:
            run.read(len(value))
        yield key, value


class _Choice(NamedTuple):
    """A column of the prefix: a value, the items of a list, or an array's elements."""

    evaluates: tuple[Evaluate, ...]
    is_array: bool = False

    def values(self, run: QueryRun) -> list[Any]:
        values = [evaluate((), run.context) for evaluate in self.evaluates]
        if self.is_array:
            values = [] if values[0] is None else list(flatten(values[0]))
        return [value for value in values if value is not None]


class _CompiledAccess:
    def __init__(self, access: Access, compiler: Compiler) -> None:
        self.index = access.index
        self.is_point = access.is_point
        self.is_whole = not access.prefix and access.start is None and access.end is None
        self._choices = [_choice(part, compiler) for part in access.prefix]
        self._start = _bound(access.start, compiler)
        self._end = _bound(access.end, compiler)

    def prefixes(self, run: QueryRun) -> list[Tuple]:
        return list(product(*[choice.values(run) for choice in self._choices]))

    def span(self, run: QueryRun, keyed: CompiledIndex, prefix: Tuple) -> Span | None:
        """None if the span is empty."""
        start, end = _bound_value(self._start, run), _bound_value(self._end, run)
        if self._start is None and self._end is None:
            return keyed.span(prefix)
        if (self._start is not None and start is None) or (self._end is not None and end is None):
            return None
        is_descending = keyed.parts[len(prefix)][1]
        if start is None and is_descending:
            start = _BEYOND_NULL
        if end is None and not is_descending:
            end = _BEYOND_NULL
        span = keyed.span(prefix, start=start, end=end)
        return span if span.lo < span.hi else None


_BEYOND_NULL = ScanBound((None,), is_inclusive=False)


def _choice(part: Any, compiler: Compiler) -> _Choice:
    if not isinstance(part, Among):
        return _Choice((compiler.evaluate(part, {}),))
    if part.array is not None:
        return _Choice((compiler.evaluate(part.array, {}),), is_array=True)
    return _Choice(tuple(compiler.evaluate(item, {}) for item in part.items))


def _bound(bound: PlanBound | None, compiler: Compiler) -> tuple[Evaluate, bool] | None:
    return None if bound is None else (compiler.evaluate(bound.value, {}), bound.is_inclusive)


def _bound_value(bound: tuple[Evaluate, bool] | None, run: QueryRun) -> ScanBound | None:
    if bound is None:
        return None
    evaluate, is_inclusive = bound
    value = evaluate((), run.context)
    return None if value is None else ScanBound((value,), is_inclusive)


class VirtualRows(RowNode):
    def __init__(self, plan: Virtual, compiler: Compiler) -> None:
        self.plan: Virtual = plan
        types = types_of(plan.outputs)
        self._condition = None if plan.condition is None else compiler.evaluate(plan.condition, types)
        self._sought = None if plan.lookup is None else _choice(plan.lookup.value, compiler)

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        rows, condition, context = self._picked(self._made(run)), self._condition, run.context
        if condition is None:
            return rows
        return (row for row in rows if condition(row, context) is True)

    def _made(self, run: QueryRun) -> Iterable[Tuple]:
        lookup = self.plan.lookup
        if lookup is None or self._sought is None:
            return run.virtual(self.plan.source, None)
        return run.virtual(self.plan.source, (lookup.column, self._sought.values(run)))

    def _picked(self, rows: Iterable[Tuple]) -> Rows:
        columns = self.plan.columns
        if len(columns) > 1:
            return map(itemgetter(*columns), rows)
        return (tuple([row[column] for column in columns]) for row in rows)


class ValuesRows(RowNode):
    def __init__(self, plan: Values, compiler: Compiler) -> None:
        self.plan: Values = plan
        self._rows = [[compiler.evaluate(node, {}) for node in row] for row in plan.rows]

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        context = run.context
        return (tuple([evaluate((), context) for evaluate in row]) for row in self._rows)


class _CompiledCall:
    """A call of a set-returning function: for a row, the rows it gives, as tuples."""

    def __init__(self, call: SetCall, types: dict[int, Any], compiler: Compiler) -> None:
        self.results = call.results
        self.nothing = (None,) * call.results
        self._evaluates = [compiler.evaluate(node, types) for node in call.arguments]
        self._function = _SET_FUNCTIONS[call.function]
        self._types = [compiler.type_of(node, types) for node in call.arguments]

    def rows(self, row: Tuple, run: QueryRun) -> Iterable[Tuple]:
        values = [evaluate(row, run.context) for evaluate in self._evaluates]
        return self._function.rows(self._types, run.context, *values)


class FunctionScanRows(RowNode):
    def __init__(self, plan: FunctionScan, compiler: Compiler) -> None:
        self.plan: FunctionScan = plan
        self._calls = [_CompiledCall(call, {}, compiler) for call in plan.calls]

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        rows = _checked(run, _side_by_side(self._calls, (), run))
        if self.plan.has_ordinality:
            rows = ((*row, number) for number, row in enumerate(rows, 1))
        return rows


class ProjectSetRows(RowNode):
    def __init__(self, plan: ProjectSet, compiler: Compiler) -> None:
        self.plan: ProjectSet = plan
        types = types_of(plan.input.outputs)
        self._input = compiler.node(plan.input)
        self._calls = [_CompiledCall(call, types, compiler) for call in plan.calls]

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        for row in self._input.start(run):
            for more in _side_by_side(self._calls, row, run):
                yield row + more


def _checked(run: QueryRun, rows: Rows) -> Rows:
    for number, row in enumerate(rows, 1):
        if not number % BATCH_ROWS:
            run.check()
        yield row


def _side_by_side(calls: list[_CompiledCall], row: Tuple, run: QueryRun) -> Rows:
    if len(calls) == 1:
        return iter(calls[0].rows(row, run))
    nothing = [call.nothing for call in calls]
    return (
        tuple(chain.from_iterable(each or nothing[place] for place, each in enumerate(together)))
        for together in zip_longest(*[call.rows(row, run) for call in calls])
    )
