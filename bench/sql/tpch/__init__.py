"""TPC-H: data, queries and the comparison with PostgreSQL."""

from bench.sql.tpch.benchmark import run as run
