"""The same objects in a PostgreSQL and in a node, and the words in which their catalogs may differ."""

import subprocess
from typing import NamedTuple

import psycopg
import psycopg.conninfo

from tenure.node import Node
from tests.postgres_server import BIN, Server

OBJECTS = """
CREATE SCHEMA app;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE users (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, email varchar(50) DEFAULT 'none',
    price numeric(8,2) DEFAULT 0.5 CHECK (price > 0), feeling mood DEFAULT 'ok', tags text[],
    at timestamptz DEFAULT now(), big bigint, flag boolean NOT NULL DEFAULT false
);
CREATE TABLE app.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id integer REFERENCES users ON DELETE CASCADE,
    note char(10), total double precision, twice double precision GENERATED ALWAYS AS (total * 2) STORED,
    d date, u uuid
);
CREATE TABLE pair (a int, b text, c int, PRIMARY KEY (a, b));
CREATE TABLE sub (a int, b text, FOREIGN KEY (a, b) REFERENCES pair (a, b) ON UPDATE SET NULL);
CREATE TABLE "Odd name" ("The key" int PRIMARY KEY, "select" text DEFAULT 'it''s');
CREATE INDEX users_email_idx ON users (email);
CREATE INDEX users_part_idx ON users (name DESC, big) WHERE flag;
CREATE UNIQUE INDEX pair_c_key ON pair (c);
CREATE VIEW rich AS SELECT id, name FROM users WHERE price > 100;
CREATE SEQUENCE counter START 5;
COMMENT ON TABLE users IS 'people';
COMMENT ON COLUMN users.name IS 'who';
COMMENT ON SCHEMA app IS 'the app';
COMMENT ON INDEX users_email_idx IS 'by mail';
COMMENT ON CONSTRAINT users_price_check ON users IS 'no gifts';
GRANT SELECT, UPDATE ON users TO reader;
GRANT USAGE ON SCHEMA app TO reader WITH GRANT OPTION;
"""


class Side(NamedTuple):
    """A server with the objects, and how to reach it."""

    host: str
    port: int
    user: str
    database: str

    @property
    def dsn(self) -> str:
        return f"host={self.host} port={self.port} user={self.user} dbname={self.database}"

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{self.user}@{self.host}:{self.port}/{self.database}"

    def run(self, script: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(script.encode())

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    def psql(self, *commands: str) -> str:
        """The output of psql's own commands, with the superuser's name in one spelling and no padding."""
        where = ["-h", self.host, "-p", str(self.port), "-U", self.user, "-d", self.database]
        arguments = [part for command in commands for part in ("-c", command)]
        done = subprocess.run(
            [BIN / "psql", "-X", "-A", *where, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return (done.stdout + done.stderr).replace(self.user, "SUPERUSER")


def side_of(node: Node) -> Side:
    assert node.front is not None
    side = Side(node.front.host, node.front.port, "root", "defaultdb")
    side.run("CREATE ROLE reader")
    side.run(OBJECTS)
    return side


def side_of_postgres(server: Server, database: str) -> Side:
    parts = psycopg.conninfo.conninfo_to_dict(server.dsn)
    side = Side("127.0.0.1", int(str(parts["port"])), "postgres", database)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
        connection.execute(b"DROP ROLE IF EXISTS reader")
        connection.execute(b"CREATE ROLE reader")
    side.run(OBJECTS)
    return side
