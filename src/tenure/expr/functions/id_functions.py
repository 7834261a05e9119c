"""New ids and random numbers, all made by the Context: uuids, unique_rowid(), random(), setseed().

    uuidv7()   48 bits of milliseconds, 12 of their fractions, 62 at random: it sorts by time

Walk: `expr.function_table` lists these.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from uuid import UUID

from tenure.base.errors import DatetimeOverflow, InvalidParameter, NotSupported
from tenure.base.interruptible import paced
from tenure.expr.functions.arithmetic import scale_of
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.functions.time_arithmetic import add_interval
from tenure.expr.types.big_numbers import EXACT, decimal_of, whole
from tenure.expr.types.interval import Interval

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GREGORIAN = datetime(1582, 10, 15, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


_BITS = 64
"""Those of one draw."""


def functions() -> Iterator[Function]:
    volatile = partial(Function, volatility=Volatility.VOLATILE, wants_context=True)
    for name in ("gen_random_uuid", "uuidv4", "uuid_generate_v4"):
        yield volatile(name, (), "uuid", lambda context: context.uuid())
    yield volatile("unique_rowid", (), "int8", lambda context: context.rowid())
    yield volatile("uuidv7", (), "uuid", _uuid7)
    yield volatile("uuidv7", ("interval",), "uuid", _uuid7)
    yield function("uuid_extract_version", "uuid -> int2", lambda value: value.version)
    yield function("uuid_extract_timestamp", "uuid -> timestamptz", _uuid_time)
    yield volatile("random", (), "float8", lambda context: context.random())
    for family in ("int4", "int8"):
        yield volatile("random", (family, family), family, _random_int)
    yield volatile("random", ("numeric", "numeric"), "numeric", _random_numeric)
    yield volatile("setseed", ("float8",), "void", _set_seed)


def _set_seed(context: Context, number: float) -> str:
    if not -1 <= number <= 1:
        raise InvalidParameter(f"setseed parameter {number:g} is out of allowed range [-1,1]")
    if context.numbers is None:
        raise NotSupported("setseed cannot be used here")
    context.numbers.seed(number)
    return ""


def _uuid7(context: Context, by: Interval | None = None) -> UUID:
    micros = context.clock_micros() if context.clock_micros else context.statement_micros
    at = _EPOCH + timedelta(microseconds=micros)
    moved = at if by is None else add_interval(at, by)
    milliseconds, rest = divmod(moved - _EPOCH, _MILLISECOND)
    if milliseconds < 0:
        raise DatetimeOverflow(
            "timestamp out of range for UUID version 7",
            detail="UUID version 7 supports timestamps from 1970-01-01 to approximately year 10889.",
        )
    fraction = rest.microseconds * 4096 // 1000
    random = context.uuid().int & (1 << 62) - 1
    return UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | random)


def _uuid_time(value: UUID) -> datetime | None:
    if value.variant != "specified in RFC 4122":
        return None
    if value.version == 1:
        return _GREGORIAN + timedelta(microseconds=value.time // 10)
    return _EPOCH + timedelta(milliseconds=value.int >> 80) if value.version == 7 else None


def _random_int(context: Context, first: int, last: int) -> int:
    if first > last:
        raise InvalidParameter("lower bound must be less than or equal to upper bound")
    return first + _random_up_to(context, last - first)


def _random_up_to(context: Context, greatest: int) -> int:
    """Each number equally likely: one of as many bits as the greatest that is above it is drawn anew."""
    pieces = -(-greatest.bit_length() // _BITS)
    shift = pieces * _BITS - greatest.bit_length()
    while True:
        bits = [context.random_bits().to_bytes(_BITS // 8, "big") for _ in paced(range(pieces))]
        drawn = int.from_bytes(b"".join(bits), "big") >> shift
        if drawn <= greatest:
            return drawn


def _random_numeric(context: Context, first: Decimal, last: Decimal) -> Decimal:
    if not (first.is_finite() and last.is_finite()) or first > last:
        raise InvalidParameter("lower bound must be less than or equal to upper bound")
    scale = max(scale_of(first), scale_of(last))
    low, high = whole(first.scaleb(scale, EXACT)), whole(last.scaleb(scale, EXACT))
    return decimal_of(_random_int(context, low, high)).scaleb(-scale, EXACT)
