"""Two columns of floats against each other: corr, covar_pop, covar_samp and the regr_ family.

f(Y, X), in the order the standard has it. All sums are of distances from the mean (the method of
Youngs and Cramer), added up in PostgreSQL's order.

Walk: `expr.aggregates.aggregate_table` lists these.
"""

from collections.abc import Callable, Iterator
from math import inf, nan, sqrt
from typing import NamedTuple

from tenure.expr.aggregates.aggregate import AggregateFunction, Steps
from tenure.expr.aggregates.sums import check_finite
from tenure.expr.types.datatype import Datum


class _Sums(NamedTuple):
    n: float = 0.0
    x: float = 0.0
    xx: float = 0.0
    y: float = 0.0
    yy: float = 0.0
    xy: float = 0.0


def aggregates() -> Iterator[AggregateFunction]:
    count = Steps(lambda: 0, lambda count, y, x: count + 1, lambda count: count)
    yield AggregateFunction("regr_count", ("float8", "float8"), "int8", lambda y, x: count)
    for name, finish in _FINISHES.items():
        steps = Steps(_Sums, _add, finish)
        yield AggregateFunction(name, ("float8", "float8"), "float8", lambda y, x, steps=steps: steps)


def _add(sums: _Sums, y: float, x: float) -> _Sums:
    n, sum_x, sum_y = sums.n + 1.0, sums.x + x, sums.y + y
    xx, yy, xy = sums.xx, sums.yy, sums.xy
    if sums.n == 0:
        strange = nan if _is_strange(x) or _is_strange(y) else 0.0
        xx, yy = (nan if _is_strange(x) else 0.0), (nan if _is_strange(y) else 0.0)
        return _Sums(n, sum_x, xx, sum_y, yy, strange)
    far_x, far_y = x * n - sum_x, y * n - sum_y
    scale = 1.0 / (n * sums.n)
    xx += far_x * far_x * scale
    yy += far_y * far_y * scale
    xy += far_x * far_y * scale
    if any(abs(each) == inf for each in (sum_x, xx, sum_y, yy, xy)):
        check_finite((sums.x, x), sum_x, xx)
        check_finite((sums.y, y), sum_y, yy)
        check_finite((sums.x, x, sums.y, y), xy)
        xx, yy, xy = (nan if abs(each) == inf else each for each in (xx, yy, xy))
    return _Sums(n, sum_x, xx, sum_y, yy, xy)


def _is_strange(value: float) -> bool:
    return value != value or abs(value) == inf


def _corr(s: _Sums) -> float | None:
    if s.n < 1 or s.xx == 0 or s.yy == 0:
        return None
    product = s.xx * s.yy
    return s.xy / sqrt(product) if product == product else nan


def _when_rows(run: Callable[[_Sums], Datum], least: int = 1) -> Callable[[_Sums], Datum]:
    return lambda sums: run(sums) if sums.n >= least else None


def _r2(s: _Sums) -> float | None:
    if s.n < 1 or s.xx == 0:
        return None
    return 1.0 if s.yy == 0 else (s.xy * s.xy) / (s.xx * s.yy)


def _slope(s: _Sums) -> float | None:
    return None if s.n < 1 or s.xx == 0 else s.xy / s.xx


def _intercept(s: _Sums) -> float | None:
    return None if s.n < 1 or s.xx == 0 else (s.y - s.x * s.xy / s.xx) / s.n


_FINISHES: dict[str, Callable[[_Sums], Datum]] = {
    "corr": _corr,
    "covar_pop": _when_rows(lambda s: s.xy / s.n),
    "covar_samp": _when_rows(lambda s: s.xy / (s.n - 1.0), 2),
    "regr_avgx": _when_rows(lambda s: s.x / s.n),
    "regr_avgy": _when_rows(lambda s: s.y / s.n),
    "regr_intercept": _intercept,
    "regr_r2": _r2,
    "regr_slope": _slope,
    "regr_sxx": _when_rows(lambda s: s.xx),
    "regr_sxy": _when_rows(lambda s: s.xy),
    "regr_syy": _when_rows(lambda s: s.yy),
}
