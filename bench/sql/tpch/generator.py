"""TPC-H's eight tables, made anew from the specification (section 4.2): proportions, domains, dependencies.

    region 5 · nation 25 · supplier 10,000 · part 200,000 · partsupp 800,000 · customer 150,000
    orders 1,500,000 · lineitem about 6,000,000                  each at scale 1; the first two at any

What follows from other values does so as specified: a part's price from its key, a line's price from its part
and quantity, flags from dates, an order's status and total from its lines, suppliers of a line from those of
its part. A third of the customers has no orders. The same scale and seed give the same rows. They are not the
rows of anybody else's generator.

Walk: `bench.sql.tpch.loading` calls `generate` and gives the files to both sides.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.sql.tpch import words
from tenure.table.arrow import decimals_of

EPOCH = date(1970, 1, 1)
FIRST_DAY = (date(1992, 1, 1) - EPOCH).days
LAST_DAY = (date(1998, 12, 31) - EPOCH).days - 151
CURRENT_DAY = (date(1995, 6, 17) - EPOCH).days
POOL_CHARACTERS = 2_000_000
ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, "
CENTS = pa.decimal128(15, 2)
SUPPLIERS_OF_A_PART = 4
LINES_MAX = 7
SUPPLIERS_MIN = 250
"""With fewer, the formula gives a part the same supplier twice."""


class Sizes(NamedTuple):
    suppliers: int
    parts: int
    customers: int
    orders: int
    clerks: int


def sizes(scale: float) -> Sizes:
    def of(count: int, least: int) -> int:
        return max(least, round(count * scale))

    return Sizes(
        suppliers=of(10_000, SUPPLIERS_MIN),
        parts=of(200_000, 200),
        customers=of(150_000, 150),
        orders=of(1_500_000, 1_500),
        clerks=of(1_000, 10),
    )


def generate(scale: float, seed: int = 1) -> Iterator[tuple[str, pa.Table]]:
    """Each table's name and rows; lines come before orders, whose totals are of them."""
    maker = _Maker(sizes(scale), seed)
    yield "region", maker.region()
    yield "nation", maker.nation()
    yield "supplier", maker.supplier()
    yield "part", maker.part()
    yield "partsupp", maker.partsupp()
    yield "customer", maker.customer()
    heads = maker.heads()
    lines = maker.lines(heads)
    yield "lineitem", maker.lineitem(heads, lines)
    yield "orders", maker.orders(heads, lines)


class Heads(NamedTuple):
    """What an order has of itself."""

    key: Any
    day: Any
    lines: Any


class Lines(NamedTuple):
    """Each line, and which order (by place) it belongs to."""

    order: Any
    number: Any
    part: Any
    quantity: Any
    cents: Any
    discount: Any
    tax: Any
    shipped: Any


class _Maker:
    def __init__(self, sizes: Sizes, seed: int) -> None:
        self._sizes = sizes
        self._draw = np.random.default_rng(seed)
        self._pool = words.text_pool(POOL_CHARACTERS, seed)

    # ── tables ─────────────────────────────────────────────────────────────────────────────────

    def region(self) -> pa.Table:
        count = len(words.REGIONS)
        return pa.table(
            {
                "r_regionkey": _ints(np.arange(count)),
                "r_name": pa.array(words.REGIONS),
                "r_comment": self._comments(count, 31, 115),
            }
        )

    def nation(self) -> pa.Table:
        count = len(words.NATIONS)
        return pa.table(
            {
                "n_nationkey": _ints(np.arange(count)),
                "n_name": pa.array([name for name, _ in words.NATIONS]),
                "n_regionkey": _ints(np.array([region for _, region in words.NATIONS])),
                "n_comment": self._comments(count, 31, 114),
            }
        )

    def supplier(self) -> pa.Table:
        count = self._sizes.suppliers
        nation = self._draw.integers(0, 25, count)
        comments = self._comments(count, 25, 100).to_pylist()
        marked = self._draw.permutation(count)[: 2 * max(1, count // 2_000)]
        for at, place in enumerate(marked):
            word = "Complaints" if at % 2 == 0 else "Recommends"
            comments[place] = f"{comments[place][:40]} Customer {comments[place][40:55]} {word}"
        return pa.table(
            {
                "s_suppkey": _ints(np.arange(1, count + 1)),
                "s_name": _numbered("Supplier", np.arange(1, count + 1)),
                "s_address": self._addresses(count),
                "s_nationkey": _ints(nation),
                "s_phone": self._phones(nation),
                "s_acctbal": _decimals(self._draw.integers(-99_999, 1_000_000, count)),
                "s_comment": pa.array(comments),
            }
        )

    def part(self) -> pa.Table:
        count = self._sizes.parts
        key = np.arange(1, count + 1)
        maker = self._draw.integers(1, 6, count)
        brand = maker * 10 + self._draw.integers(1, 6, count)
        colors = np.argsort(self._draw.random((count, len(words.COLORS))), axis=1)[:, :5]
        names = [" ".join(words.COLORS[each] for each in row) for row in colors.tolist()]
        return pa.table(
            {
                "p_partkey": _ints(key),
                "p_name": pa.array(names),
                "p_mfgr": pa.array([f"Manufacturer#{each}" for each in maker.tolist()]),
                "p_brand": pa.array([f"Brand#{each}" for each in brand.tolist()]),
                "p_type": self._joined(words.TYPES, count),
                "p_size": _ints(self._draw.integers(1, 51, count)),
                "p_container": self._joined(words.CONTAINERS, count),
                "p_retailprice": _decimals(_retail_cents(key)),
                "p_comment": self._comments(count, 5, 22),
            }
        )

    def partsupp(self) -> pa.Table:
        part = np.repeat(np.arange(1, self._sizes.parts + 1), SUPPLIERS_OF_A_PART)
        which = np.tile(np.arange(SUPPLIERS_OF_A_PART), self._sizes.parts)
        count = len(part)
        return pa.table(
            {
                "ps_partkey": _ints(part),
                "ps_suppkey": _ints(self._supplier_of(part, which)),
                "ps_availqty": _ints(self._draw.integers(1, 10_000, count)),
                "ps_supplycost": _decimals(self._draw.integers(100, 100_001, count)),
                "ps_comment": self._comments(count, 49, 198),
            }
        )

    def customer(self) -> pa.Table:
        count = self._sizes.customers
        nation = self._draw.integers(0, 25, count)
        return pa.table(
            {
                "c_custkey": _ints(np.arange(1, count + 1)),
                "c_name": _numbered("Customer", np.arange(1, count + 1)),
                "c_address": self._addresses(count),
                "c_nationkey": _ints(nation),
                "c_phone": self._phones(nation),
                "c_acctbal": _decimals(self._draw.integers(-99_999, 1_000_000, count)),
                "c_mktsegment": self._chosen(words.SEGMENTS, count),
                "c_comment": self._comments(count, 29, 116),
            }
        )

    def heads(self) -> Heads:
        """Of 32 keys, 8 are used."""
        at = np.arange(self._sizes.orders)
        key = (at // 8) * 32 + at % 8 + 1
        day = self._draw.integers(FIRST_DAY, LAST_DAY + 1, len(at))
        return Heads(key, day, self._draw.integers(1, LINES_MAX + 1, len(at)))

    def lines(self, heads: Heads) -> Lines:
        order = np.repeat(np.arange(len(heads.key)), heads.lines)
        count = len(order)
        first = np.cumsum(heads.lines) - heads.lines
        part = self._draw.integers(1, self._sizes.parts + 1, count)
        quantity = self._draw.integers(1, 51, count)
        return Lines(
            order=order,
            number=np.arange(count) - first[order] + 1,
            part=part,
            quantity=quantity,
            cents=quantity * _retail_cents(part),
            discount=self._draw.integers(0, 11, count),
            tax=self._draw.integers(0, 9, count),
            shipped=heads.day[order] + self._draw.integers(1, 122, count),
        )

    def lineitem(self, heads: Heads, lines: Lines) -> pa.Table:
        count = len(lines.order)
        received = lines.shipped + self._draw.integers(1, 31, count)
        committed = heads.day[lines.order] + self._draw.integers(30, 91, count)
        returned = np.where(received <= CURRENT_DAY, self._draw.integers(0, 2, count), 2)
        which = self._draw.integers(0, SUPPLIERS_OF_A_PART, count)
        return pa.table(
            {
                "l_orderkey": _ints(heads.key[lines.order]),
                "l_partkey": _ints(lines.part),
                "l_suppkey": _ints(self._supplier_of(lines.part, which)),
                "l_linenumber": _ints(lines.number),
                "l_quantity": _decimals(lines.quantity * 100),
                "l_extendedprice": _decimals(lines.cents),
                "l_discount": _decimals(lines.discount),
                "l_tax": _decimals(lines.tax),
                "l_returnflag": _taken(("R", "A", "N"), returned),
                "l_linestatus": _taken(("F", "O"), (lines.shipped > CURRENT_DAY).astype(int)),
                "l_shipdate": _days(lines.shipped),
                "l_commitdate": _days(committed),
                "l_receiptdate": _days(received),
                "l_shipinstruct": self._chosen(words.INSTRUCTIONS, count),
                "l_shipmode": self._chosen(words.MODES, count),
                "l_comment": self._comments(count, 10, 43),
            }
        )

    def orders(self, heads: Heads, lines: Lines) -> pa.Table:
        count = len(heads.key)
        # Ten-thousandths of a cent per line: whole numbers up to here, then rounded half up to cents.
        exact = lines.cents * (100 + lines.tax) * (100 - lines.discount)
        totals = np.bincount(lines.order, weights=(exact + 5_000) // 10_000, minlength=count).astype(np.int64)
        open_lines = np.bincount(lines.order, weights=lines.shipped > CURRENT_DAY, minlength=count)
        status = np.where(open_lines == 0, 0, np.where(open_lines == heads.lines, 1, 2))
        return pa.table(
            {
                "o_orderkey": _ints(heads.key),
                "o_custkey": _ints(self._buyers(count)),
                "o_orderstatus": _taken(("F", "O", "P"), status),
                "o_totalprice": _decimals(totals),
                "o_orderdate": _days(heads.day),
                "o_orderpriority": self._chosen(words.PRIORITIES, count),
                "o_clerk": _numbered("Clerk", self._draw.integers(1, self._sizes.clerks + 1, count)),
                "o_shippriority": _ints(np.zeros(count)),
                "o_comment": self._comments(count, 19, 78),
            }
        )

    # ── columns ────────────────────────────────────────────────────────────────────────────────

    def _buyers(self, count: int) -> Any:
        """Customers whose key is not a multiple of three."""
        drawn = self._draw.integers(0, self._sizes.customers - self._sizes.customers // 3, count)
        return drawn // 2 * 3 + drawn % 2 + 1

    def _supplier_of(self, part: Any, which: Any) -> Any:
        """The specification's formula, which spreads the four suppliers of a part."""
        count = self._sizes.suppliers
        return (part + which * (count // SUPPLIERS_OF_A_PART + (part - 1) // count)) % count + 1

    def _comments(self, count: int, shortest: int, longest: int) -> pa.Array:
        lengths = self._draw.integers(shortest, longest + 1, count)
        starts = self._draw.integers(0, POOL_CHARACTERS - longest, count)
        pool = self._pool
        ends = starts + lengths
        return pa.array([pool[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])

    def _addresses(self, count: int) -> pa.Array:
        lengths = self._draw.integers(10, 41, count).tolist()
        drawn = self._draw.integers(0, len(ALPHABET) - 1, (count, 40))
        letters = np.array(list(ALPHABET))[drawn]
        return pa.array(["".join(row[:length]) for row, length in zip(letters, lengths, strict=True)])

    def _phones(self, nation: Any) -> pa.Array:
        count = len(nation)
        parts = [nation + 10, *(self._draw.integers(*bounds, count) for bounds in _PHONE)]
        rows = zip(*(part.tolist() for part in parts), strict=True)
        return pa.array([f"{a}-{b}-{c}-{d}" for a, b, c, d in rows])

    def _chosen(self, values: Sequence[str], count: int) -> pa.Array:
        return _taken(values, self._draw.integers(0, len(values), count))

    def _joined(self, lists: Sequence[Sequence[str]], count: int) -> pa.Array:
        """One word of each list."""
        drawn = [self._draw.integers(0, len(each), count).tolist() for each in lists]
        rows = zip(*drawn, strict=True)
        return pa.array([" ".join(words[at] for words, at in zip(lists, row, strict=True)) for row in rows])


_PHONE = ((100, 1000), (100, 1000), (1000, 10_000))


def _retail_cents(part: Any) -> Any:
    return 90_000 + (part // 10) % 20_001 + 100 * (part % 1_000)


def _ints(values: Any) -> pa.Array:
    return pa.array(values.astype(np.int32))


def _decimals(cents: Any) -> pa.Array:
    return decimals_of(pa.array(cents.astype(np.int64)), CENTS)


def _days(values: Any) -> pa.Array:
    return pa.array(values.astype(np.int32)).view(pa.date32())


def _taken(values: Sequence[str], places: Any) -> pa.Array:
    return pa.array(values).take(pa.array(places.astype(np.int32)))


def _numbered(word: str, numbers: Any) -> pa.Array:
    return pa.array([f"{word}#{each:09d}" for each in numbers.tolist()])
