"""TPC-H's tables on both sides: made, loaded from the same CSV files, and changed in the same way.

Ours are imported, so their rows lie in the lake. PostgreSQL copies the files in, and has an index on each
foreign key besides: without them it does not end with queries 17 and 20. Then it is vacuumed and analyzed.

The changes are some hundred updates, deletes and new rows in the four tables that a business would change.

Walk: `bench.sql.tpch.benchmark` calls `write_files`, `load` and `change`.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow.csv as csv

from bench.sql.places import Place
from bench.sql.tpch.generator import generate
from bench.store.rounds import note

TABLES = {
    "region": """r_regionkey int PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152)""",
    "nation": """n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey int NOT NULL,
        n_comment varchar(152)""",
    "supplier": """s_suppkey int PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL,
        s_nationkey int NOT NULL, s_phone char(15) NOT NULL, s_acctbal numeric(15, 2) NOT NULL,
        s_comment varchar(101) NOT NULL""",
    "part": """p_partkey int PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL,
        p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size int NOT NULL,
        p_container char(10) NOT NULL, p_retailprice numeric(15, 2) NOT NULL,
        p_comment varchar(23) NOT NULL""",
    "partsupp": """ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL,
        ps_supplycost numeric(15, 2) NOT NULL, ps_comment varchar(199) NOT NULL,
        PRIMARY KEY (ps_partkey, ps_suppkey)""",
    "customer": """c_custkey int PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL,
        c_nationkey int NOT NULL, c_phone char(15) NOT NULL, c_acctbal numeric(15, 2) NOT NULL,
        c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL""",
    "orders": """o_orderkey int PRIMARY KEY, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL,
        o_totalprice numeric(15, 2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL,
        o_clerk char(15) NOT NULL, o_shippriority int NOT NULL, o_comment varchar(79) NOT NULL""",
    "lineitem": """l_orderkey int NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL,
        l_linenumber int NOT NULL, l_quantity numeric(15, 2) NOT NULL,
        l_extendedprice numeric(15, 2) NOT NULL,
        l_discount numeric(15, 2) NOT NULL, l_tax numeric(15, 2) NOT NULL, l_returnflag char(1) NOT NULL,
        l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
        l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL,
        l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)""",
}

PEER_INDEXES = (
    "CREATE INDEX ON supplier (s_nationkey)",
    "CREATE INDEX ON partsupp (ps_suppkey)",
    "CREATE INDEX ON customer (c_nationkey)",
    "CREATE INDEX ON orders (o_custkey)",
    "CREATE INDEX ON lineitem (l_partkey, l_suppkey)",
    "CREATE INDEX ON lineitem (l_suppkey)",
)

CHANGES: Sequence[str] = (
    "UPDATE lineitem SET l_quantity = l_quantity + 1, l_discount = 0.10 WHERE l_orderkey % 40009 < 40",
    "UPDATE orders SET o_orderdate = o_orderdate + 30, o_comment = 'special requests' "
    "WHERE o_orderkey % 40009 < 60",
    "UPDATE customer SET c_acctbal = c_acctbal - 100, c_mktsegment = 'BUILDING' WHERE c_custkey % 3001 = 5",
    "UPDATE partsupp SET ps_supplycost = 1.00, ps_availqty = 9999 WHERE ps_partkey % 2003 = 7",
    "DELETE FROM lineitem WHERE l_orderkey % 40009 = 65",
    "DELETE FROM orders WHERE o_orderkey % 40009 = 65",
    "INSERT INTO orders SELECT o_orderkey + 8, o_custkey, 'O', 1.00, o_orderdate, o_orderpriority, o_clerk, "
    "o_shippriority, o_comment FROM orders "
    "WHERE o_orderkey % 40009 BETWEEN 100 AND 140 AND o_orderkey % 32 < 9",
    "INSERT INTO lineitem SELECT l_orderkey + 8, l_partkey, l_suppkey, l_linenumber, l_quantity, "
    "l_extendedprice, l_discount, l_tax, 'N', 'O', l_shipdate + 10, l_commitdate, l_receiptdate + 10, "
    "l_shipinstruct, l_shipmode, l_comment FROM lineitem "
    "WHERE l_orderkey % 40009 BETWEEN 100 AND 140 AND l_orderkey % 32 < 9",
)
"""Each changes as many rows on both sides. New rows have keys that are not used: of 32, the last 24."""


def write_files(directory: Path, scale: float) -> None:
    began = time.perf_counter()
    directory.mkdir(exist_ok=True)
    options = csv.WriteOptions(include_header=False)
    rows = 0
    for name, table in generate(scale):
        csv.write_csv(table, directory / f"{name}.csv", options)
        rows += table.num_rows
    note(f"sql.tpch: {rows} rows made in {time.perf_counter() - began:.1f} s")


def load(node: Place, postgres: Place, directory: Path) -> None:
    """`directory` is the node's own for files; PostgreSQL is sent its files by the client."""
    began = time.perf_counter()
    with node.connect() as connection:
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.execute(f"IMPORT INTO {name} CSV DATA ('{name}.csv')")
    imported = time.perf_counter()
    with postgres.connect() as connection:
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with (
                (directory / f"{name}.csv").open("rb") as file,
                connection.cursor().copy(f"COPY {name} FROM STDIN CSV") as copy,
            ):
                while block := file.read(1 << 20):
                    copy.write(block)
        for statement in PEER_INDEXES:
            connection.execute(statement)
        connection.execute("VACUUM ANALYZE")
    note(
        f"sql.tpch: imported in {imported - began:.1f} s, "
        f"PostgreSQL's copied and indexed in {time.perf_counter() - imported:.1f} s"
    )


def change(node: Place, postgres: Place) -> None:
    began = time.perf_counter()
    rows = 0
    with node.connect() as ours, postgres.connect() as theirs:
        for statement in CHANGES:
            mine, peers = ours.execute(statement).rowcount, theirs.execute(statement).rowcount
            assert mine == peers, f"{mine} rows, PostgreSQL {peers}: {statement}"
            rows += mine
        theirs.execute("VACUUM ANALYZE")
    note(f"sql.tpch: {rows} rows changed in {time.perf_counter() - began:.1f} s")
