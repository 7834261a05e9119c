"""CREATE TYPE ... AS ENUM and ALTER TYPE ... ADD VALUE, RENAME VALUE.

Walk: `statements.ddl.ddl_statements` -> these -> `catalog.changes.object_changes`.
"""

from tenure.base.errors import DuplicateObject, InvalidName, NotSupported
from tenure.catalog.changes.object_changes import add_enum_value, create_enum, rename_enum_value
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.naming import NAME_BYTES_MAX
from tenure.sql.text.parse import Tree, names, option


def create_type(definer: Definer, tree: Tree) -> str | None:
    path = names(tree.type_name)
    schema = definer.schema_for(path[:-1])
    if definer.is_taken(schema, path[-1]):
        raise DuplicateObject(f'type "{path[-1]}" already exists')
    labels = names(tree.vals)
    for each in labels:
        _check(each)
    create_enum(
        definer.draft,
        definer.use,
        id=definer.fresh_id(),
        schema=schema.id,
        name=path[-1],
        owner=definer.owner,
        labels=labels,
    )
    return None


def alter_type(definer: Definer, tree: Tree) -> str | None:
    enum = definer.enum(names(tree.type_name))
    definer.require_owner(enum)
    labels = [each.label for each in enum.members]
    _check(tree.new_val)
    if tree.old_val:
        rename_enum_value(definer.draft, definer.use, enum.id, tree.old_val, tree.new_val)
        return None
    if tree.skip_if_new_val_exists and tree.new_val in labels:
        definer.notice(f'enum label "{tree.new_val}" already exists, skipping', "42710")
        return None
    neighbour = tree.new_val_neighbor or None
    before, after = (None, neighbour) if tree.new_val_is_after else (neighbour, None)
    add_enum_value(definer.draft, definer.use, enum.id, tree.new_val, before=before, after=after)
    return None


def _check(label: str) -> None:
    if len(label.encode()) > NAME_BYTES_MAX:
        raise InvalidName(
            f'invalid enum label "{label}"', detail=f"Labels must be {NAME_BYTES_MAX} bytes or less."
        )


def refuse_other_types(definer: Definer, tree: Tree) -> str | None:
    """Refuses CREATE TYPE of other kinds, and CREATE DOMAIN."""
    words = {
        "DefineStmt": "this kind of type",
        "CompositeTypeStmt": "composite types",
        "CreateRangeStmt": "range types",
        "CreateDomainStmt": "domains",
        "AlterDomainStmt": "domains",
    }
    what = words[tree.DESCRIPTOR.name]
    if tree.DESCRIPTOR.name == "DefineStmt":
        what = f"CREATE {option(tree, 'kind').removeprefix('OBJECT_')}"
        raise NotSupported(f"{what} is not supported")
    raise NotSupported(f"{what} are not supported")
