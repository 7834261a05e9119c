"""COMMENT ON: comments on objects, stored in their descriptors.

Walk: `statements.ddl.ddl_statements` -> `comment` -> `catalog.changes.object_changes.set_comment`, or a
change of the table.
"""

from tenure.base.errors import NotSupported, SyntaxFault, UndefinedDatabase, UndefinedObject, WrongObjectType
from tenure.catalog.changes.column_changes import SetColumnComment
from tenure.catalog.changes.constraint_changes import SetConstraintComment
from tenure.catalog.changes.index_changes import SetIndexComment
from tenure.catalog.changes.object_changes import set_comment
from tenure.catalog.changes.table_changes import alter
from tenure.catalog.changes.table_parts import constraint_named
from tenure.catalog.changes.view_changes import set_view_column_comment
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.definitions import Table, View
from tenure.sql.statements.ddl.databases import database_named
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.naming import index
from tenure.sql.statements.ddl.schemas import schema_named
from tenure.sql.text.parse import Tree, child, kind, names, option

RELATIONS = {"OBJECT_TABLE": Table, "OBJECT_VIEW": View, "OBJECT_SEQUENCE": SequenceDescriptor}


def comment(definer: Definer, tree: Tree) -> str | None:
    target, text = child(tree, "object"), tree.comment
    match option(tree, "objtype"):
        case "OBJECT_DATABASE":
            _on_database(definer, target.sval, text)
        case "OBJECT_SCHEMA":
            set_comment(definer.draft, definer.use, schema_named(definer, target.sval).id, text)
        case "OBJECT_TYPE":
            path = names(target.names if kind(target) == "TypeName" else target.items)
            set_comment(definer.draft, definer.use, definer.enum(path).id, text)
        case "OBJECT_TABLE" | "OBJECT_VIEW" | "OBJECT_SEQUENCE" as what:
            _on_relation(definer, what, names(target.items), text)
        case "OBJECT_COLUMN":
            _on_column(definer, names(target.items), text)
        case "OBJECT_INDEX":
            table, found = index(definer, names(target.items))
            alter(definer.draft, definer.use, table.id, SetIndexComment(found.name, text))
        case "OBJECT_TABCONSTRAINT":
            _on_constraint(definer, names(target.items), text)
        case other:
            word = other.removeprefix("OBJECT_").replace("_", " ")
            raise NotSupported(f"COMMENT ON {word} is not supported")
    return None


def _on_database(definer: Definer, name: str, text: str) -> None:
    try:
        set_comment(definer.draft, definer.use, database_named(definer, name).id, text)
    except UndefinedDatabase as error:
        # Dumps are restored into databases of other names: PostgreSQL only warns.
        definer.session.notice(str(error), "WARNING", error.sqlstate)


def _on_relation(definer: Definer, what: str, path: list[str], text: str) -> None:
    found = definer.relation(path)
    if not isinstance(found, RELATIONS[what]):
        word = what.removeprefix("OBJECT_").lower()
        raise WrongObjectType(f'"{path[-1]}" is not a {word}')
    set_comment(definer.draft, definer.use, found.id, text)


def _on_column(definer: Definer, path: list[str], text: str) -> None:
    if len(path) < 2:
        raise SyntaxFault("column name must be qualified")
    found = definer.relation(path[:-1])
    match found:
        case Table():
            alter(definer.draft, definer.use, found.id, SetColumnComment(path[-1], text))
        case View():
            set_view_column_comment(definer.draft, definer.use, found.id, path[-1], text)
        case _:
            raise WrongObjectType(f'cannot set comment on relation "{found.name}"')


def _on_constraint(definer: Definer, path: list[str], text: str) -> None:
    table = definer.table(path[:-1])
    if constraint_named(table, path[-1]) is None:
        raise UndefinedObject(f'constraint "{path[-1]}" for table "{table.name}" does not exist')
    alter(definer.draft, definer.use, table.id, SetConstraintComment(path[-1], text))
