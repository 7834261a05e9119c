"""Statements about databases, and about schemas of other databases, that PostgreSQL's grammar does not know.

    CREATE DATABASE IF NOT EXISTS d            DROP DATABASE [IF EXISTS] d { CASCADE | RESTRICT }
    CREATE SCHEMA [IF NOT EXISTS] d.s ...      DROP SCHEMA [IF EXISTS] d.s, ... [CASCADE | RESTRICT]
    ALTER SCHEMA d.s { RENAME TO s2 | OWNER TO r }

The part without the database is left to PostgreSQL's grammar, and to the module of the same statement.

Walk: `statements.ddl.ddl_statements` -> these -> `statements.ddl.schemas`, `statements.ddl.databases`,
`statements.ddl.object_names`, `statements.ddl.dropping`.
"""

from tenure.base.errors import NotSupported
from tenure.sql.execution.planner import Planner
from tenure.sql.statements.ddl import object_names
from tenure.sql.statements.ddl.databases import create_database, database_named, drop_database
from tenure.sql.statements.ddl.definition import Definer, Definition
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.ddl.dropping import drop_schemas
from tenure.sql.statements.ddl.schemas import create_schema
from tenure.sql.text.parse import Tree, kind, parse
from tenure.sql.text.quoting import quoted
from tenure.sql.text.tenure_statements import TokenReader


def create_database_if_not_exists(
    node: DefinitionServices, planner: Planner, reader: TokenReader
) -> Definition:
    reader.expect("exists")
    planner.text = f"CREATE DATABASE {reader.rest()}"
    tree = parse(planner.text)[0].tree

    def apply(definer: Definer, tree: Tree) -> str | None:
        return create_database(definer, tree, if_not_exists=True)

    return Definition(node, "CREATE DATABASE", tree, apply, planner.text, not_in_block="CREATE DATABASE")


def create_schema_in_database(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Definition:
    words = "IF NOT EXISTS " if reader.take("if", "not", "exists") else ""
    database = "" if reader.peek() == "authorization" else reader.name()
    rest = reader.rest()
    text = planner.text
    if rest.startswith("."):
        text = f"CREATE SCHEMA {words}{rest[1:].lstrip()}"
    else:
        database = ""
    tree = parse(text)[0].tree

    def apply(definer: Definer, tree: Tree) -> str | None:
        return create_schema(definer, tree, database=database)

    return Definition(node, "CREATE SCHEMA", tree, apply, text)


def change_schema_in_database(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Definition:
    """ALTER or DROP SCHEMA, with a database in front of a schema's name."""
    _refuse_as_of(planner)
    if reader.take("drop", "schema"):
        return _drop_schemas(node, planner, reader)
    reader.expect("alter", "schema")
    database = reader.name()
    reader.expect(".")
    schema = reader.name()
    text = f"ALTER SCHEMA {quoted(schema)} {reader.rest()}"
    tree = parse(text)[0].tree
    change = object_names.rename if kind(tree) == "RenameStmt" else object_names.set_owner

    def apply(definer: Definer, tree: Tree) -> str | None:
        return change(definer.in_database(database_named(definer, database).id), tree)

    return Definition(node, "ALTER SCHEMA", tree, apply, text)


def _drop_schemas(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Definition:
    is_missing_ok = reader.take("if", "exists")
    paths = [reader.names()]
    while reader.take(","):
        paths.append(reader.names())
    is_cascade = reader.take("cascade")
    if not is_cascade:
        reader.take("restrict")
    if not reader.is_over or any(len(path) > 2 for path in paths):
        raise reader.fault()

    def apply(definer: Definer, tree: Tree) -> str | None:
        drop_schemas(definer, paths, is_missing_ok, is_cascade)
        return None

    return Definition(node, "DROP SCHEMA", None, apply, planner.text)


def drop_database_whole(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Definition:
    """DROP DATABASE with CASCADE, which is what it does without, or RESTRICT."""
    _refuse_as_of(planner)
    reader.expect("drop", "database")
    words = "IF EXISTS " if reader.take("if", "exists") else ""
    name = reader.name()
    is_cascade = reader.take("cascade")
    if not is_cascade:
        reader.expect("restrict")
    reader.end()
    text = f"DROP DATABASE {words}{quoted(name)}"

    def apply(definer: Definer, tree: Tree) -> str | None:
        return drop_database(definer, tree, is_cascade=is_cascade)

    tree = parse(text)[0].tree
    return Definition(node, "DROP DATABASE", tree, apply, text, not_in_block="DROP DATABASE")


def _refuse_as_of(planner: Planner) -> None:
    if planner.as_of:
        raise NotSupported("AS OF SYSTEM TIME is not supported in statements that define")
