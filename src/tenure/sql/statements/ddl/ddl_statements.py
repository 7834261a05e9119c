"""Every statement that defines something, by the kind of its parse tree.

Walk: `statements.statement_table` asks for the `planners`; each gives a `Definition`.
"""

from collections.abc import Callable
from functools import partial

from tenure.base.errors import NotSupported
from tenure.sql.execution.planner import Planner, TreePlanner, WordsPlanner
from tenure.sql.statements.ddl import alter_table, dropping, object_names
from tenure.sql.statements.ddl.comments import comment
from tenure.sql.statements.ddl.create_table import create_table
from tenure.sql.statements.ddl.create_table_as import create_table_as, select_into
from tenure.sql.statements.ddl.databases import alter_database, create_database, drop_database
from tenure.sql.statements.ddl.definition import Definer, Definition
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.ddl.enums import alter_type, create_type, refuse_other_types
from tenure.sql.statements.ddl.indexes import create_index
from tenure.sql.statements.ddl.roles import alter_role, create_role, drop_role
from tenure.sql.statements.ddl.schemas import create_schema
from tenure.sql.statements.ddl.sequences import alter_sequence, create_sequence
from tenure.sql.statements.ddl.truncate import truncate
from tenure.sql.statements.ddl.views import create_view
from tenure.sql.text.parse import Tree, has, parse
from tenure.sql.text.tenure_statements import TokenReader

Apply = Callable[[Definer, Tree], str | None]
Tag = str | Callable[[Tree], str]
DefinitionPlanner = Callable[[DefinitionServices, Planner, Tree], Definition]


def planners(node: DefinitionServices) -> dict[str, TreePlanner]:
    return {kind: partial(plan, node) for kind, plan in PLANNERS.items()}


def planners_by_words(node: DefinitionServices) -> dict[tuple[str, ...], WordsPlanner]:
    """Those that PostgreSQL's grammar does not know."""
    return {
        ("create", "database", "if", "not"): partial(create_database_if_not_exists, node),
        ("create", "schema"): partial(create_schema_in_database, node),
    }


def defining(
    tag: Tag, apply: Apply, *, not_in_block: Callable[[Tree], str] = lambda tree: ""
) -> DefinitionPlanner:
    def plan(node: DefinitionServices, planner: Planner, tree: Tree) -> Definition:
        if planner.as_of:
            raise NotSupported("AS OF SYSTEM TIME is not supported in statements that define")
        spoken = tag if isinstance(tag, str) else tag(tree)
        return Definition(node, spoken, tree, apply, planner.text, not_in_block(tree))

    return plan


def _concurrently(tag: str) -> Callable[[Tree], str]:
    return lambda tree: f"{tag} CONCURRENTLY" if tree.concurrent else ""


def plan_select_into(node: DefinitionServices, planner: Planner, tree: Tree) -> Definition:
    return Definition(node, "SELECT INTO", tree, partial(select_into, as_of=planner.as_of), planner.text)


def _plan_create_table_as(node: DefinitionServices, planner: Planner, tree: Tree) -> Definition:
    return Definition(
        node, "CREATE TABLE AS", tree, partial(create_table_as, as_of=planner.as_of), planner.text
    )


def is_select_into(tree: Tree) -> bool:
    return has(tree, "into_clause")


def create_database_if_not_exists(
    node: DefinitionServices, planner: Planner, reader: TokenReader
) -> Definition:
    """CREATE DATABASE IF NOT EXISTS, which PostgreSQL's grammar does not know."""
    reader.expect("exists")
    planner.text = f"CREATE DATABASE {reader.rest()}"
    tree = parse(planner.text)[0].tree

    def apply(definer: Definer, tree: Tree) -> str | None:
        return create_database(definer, tree, if_not_exists=True)

    return Definition(node, "CREATE DATABASE", tree, apply, planner.text, not_in_block="CREATE DATABASE")


def create_schema_in_database(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Definition:
    """CREATE SCHEMA [IF NOT EXISTS] database.schema: PostgreSQL's grammar knows no database there."""
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


PLANNERS: dict[str, DefinitionPlanner] = {
    "AlterDatabaseStmt": defining("ALTER DATABASE", alter_database),
    "AlterDatabaseSetStmt": defining("ALTER DATABASE", alter_database),
    "AlterEnumStmt": defining("ALTER TYPE", alter_type),
    "AlterObjectSchemaStmt": defining(object_names.object_tag, object_names.set_schema),
    "AlterOwnerStmt": defining(object_names.object_tag, object_names.set_owner),
    "AlterRoleStmt": defining("ALTER ROLE", alter_role),
    "AlterSeqStmt": defining("ALTER SEQUENCE", alter_sequence),
    "AlterTableStmt": defining(alter_table.alter_tag, alter_table.alter_table),
    "CommentStmt": defining("COMMENT", comment),
    "CompositeTypeStmt": defining("CREATE TYPE", refuse_other_types),
    "CreateDomainStmt": defining("CREATE DOMAIN", refuse_other_types),
    "CreateEnumStmt": defining("CREATE TYPE", create_type),
    "CreateRangeStmt": defining("CREATE TYPE", refuse_other_types),
    "CreateRoleStmt": defining("CREATE ROLE", create_role),
    "CreateSchemaStmt": defining("CREATE SCHEMA", create_schema),
    "CreateSeqStmt": defining("CREATE SEQUENCE", create_sequence),
    "CreateStmt": defining("CREATE TABLE", create_table),
    "CreateTableAsStmt": _plan_create_table_as,
    "CreatedbStmt": defining("CREATE DATABASE", create_database, not_in_block=lambda tree: "CREATE DATABASE"),
    "DefineStmt": defining("CREATE", refuse_other_types),
    "DropRoleStmt": defining("DROP ROLE", drop_role),
    "DropStmt": defining(dropping.tag_of, dropping.drop, not_in_block=_concurrently("DROP INDEX")),
    "DropdbStmt": defining("DROP DATABASE", drop_database, not_in_block=lambda tree: "DROP DATABASE"),
    "IndexStmt": defining("CREATE INDEX", create_index, not_in_block=_concurrently("CREATE INDEX")),
    "RenameStmt": defining(object_names.rename_tag, object_names.rename),
    "TruncateStmt": defining("TRUNCATE TABLE", truncate),
    "ViewStmt": defining("CREATE VIEW", create_view),
}
"""By PostgreSQL's names for the nodes."""
