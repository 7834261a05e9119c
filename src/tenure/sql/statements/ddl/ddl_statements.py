"""Every statement that defines something, by the kind of its parse tree.

Walk: `statements.statement_table` asks for the `planners`; each gives a `Definition`.
"""

from collections.abc import Callable
from functools import partial

from tenure.base.errors import NotSupported
from tenure.sql.execution.planner import Planner, TreePlanner, WordsPlanner
from tenure.sql.statements.ddl import dropping, object_names
from tenure.sql.statements.ddl.comments import comment
from tenure.sql.statements.ddl.conversion import plan_convert, plan_move
from tenure.sql.statements.ddl.databases import alter_database, create_database, drop_database
from tenure.sql.statements.ddl.definition import Definer, Definition
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.ddl.enums import alter_type, create_type, refuse_other_types
from tenure.sql.statements.ddl.indexes import create_index
from tenure.sql.statements.ddl.other_databases import (
    change_schema_in_database,
    create_database_if_not_exists,
    create_schema_in_database,
    drop_database_whole,
)
from tenure.sql.statements.ddl.privileges.default_privileges import alter_defaults
from tenure.sql.statements.ddl.privileges.grants import grant
from tenure.sql.statements.ddl.privileges.owned import drop_owned, reassign_owned
from tenure.sql.statements.ddl.privileges.roles import alter_role, create_role, drop_role, grant_roles
from tenure.sql.statements.ddl.schemas import create_schema
from tenure.sql.statements.ddl.sequences import alter_sequence, create_sequence
from tenure.sql.statements.ddl.snapshots import plan_create, plan_drop
from tenure.sql.statements.ddl.tables import alter_table
from tenure.sql.statements.ddl.tables.create_table import create_table
from tenure.sql.statements.ddl.tables.create_table_as import create_table_as, select_into
from tenure.sql.statements.ddl.truncate import truncate
from tenure.sql.statements.ddl.undropping import plan_undrop
from tenure.sql.statements.ddl.views import create_view
from tenure.sql.statements.ddl.zones import plan_configure
from tenure.sql.text.parse import Tree, has
from tenure.sql.text.tenure_statements import (
    CONFIGURE_ZONE,
    CONVERT_TO_SCHEMA,
    DROP_DATABASE_WHOLE,
    MOVE_TABLE,
    SCHEMA_OF_DATABASE,
)

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
        SCHEMA_OF_DATABASE: partial(change_schema_in_database, node),
        ("undrop",): partial(plan_undrop, node),
        CONVERT_TO_SCHEMA: partial(plan_convert, node),
        MOVE_TABLE: partial(plan_move, node),
        DROP_DATABASE_WHOLE: partial(drop_database_whole, node),
        ("create", "snapshot"): partial(plan_create, node),
        ("drop", "snapshot"): partial(plan_drop, node),
        CONFIGURE_ZONE: partial(plan_configure, node),
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


PLANNERS: dict[str, DefinitionPlanner] = {
    "AlterDatabaseStmt": defining("ALTER DATABASE", alter_database),
    "AlterDefaultPrivilegesStmt": defining("ALTER DEFAULT PRIVILEGES", alter_defaults),
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
    "DropOwnedStmt": defining("DROP OWNED", drop_owned),
    "DropRoleStmt": defining("DROP ROLE", drop_role),
    "DropStmt": defining(dropping.tag_of, dropping.drop, not_in_block=_concurrently("DROP INDEX")),
    "DropdbStmt": defining("DROP DATABASE", drop_database, not_in_block=lambda tree: "DROP DATABASE"),
    "GrantStmt": defining("GRANT", grant),
    "GrantRoleStmt": defining("GRANT ROLE", grant_roles),
    "IndexStmt": defining("CREATE INDEX", create_index, not_in_block=_concurrently("CREATE INDEX")),
    "ReassignOwnedStmt": defining("REASSIGN OWNED", reassign_owned),
    "RenameStmt": defining(object_names.rename_tag, object_names.rename),
    "TruncateStmt": defining("TRUNCATE TABLE", truncate),
    "ViewStmt": defining("CREATE VIEW", create_view),
}
"""By PostgreSQL's names for the nodes."""
