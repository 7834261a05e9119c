"""CREATE SEQUENCE and ALTER SEQUENCE.

The options of a sequence are part of the transaction; its values are not: RESTART takes effect at once, as
setval() does, and a rollback does not undo it.

Walk: `statements.ddl.ddl_statements` -> these -> `catalog.changes.sequence_changes`.
"""

from collections.abc import Sequence

from tenure.base.errors import SyntaxFault, WrongObjectType
from tenure.catalog.changes.sequence_changes import alter_sequence as change
from tenure.catalog.changes.sequence_changes import create_sequence as create
from tenure.catalog.changes.sequence_changes import set_owned_by
from tenure.catalog.changes.table_parts import column_of
from tenure.catalog.descriptors.definitions import OwnedBy, Table
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.sequence_options import options_of, restart_of
from tenure.sql.statements.ddl.tables.create_table import skips
from tenure.sql.text.parse import Tree, child, items, names


def create_sequence(definer: Definer, tree: Tree) -> str | None:
    is_temporary = tree.sequence.relpersistence == "t"
    schema = definer.schema_for(path_of(tree.sequence)[:-1], is_temporary=is_temporary)
    name = tree.sequence.relname
    if skips(definer, schema, name, if_not_exists=tree.if_not_exists):
        return None
    id = definer.fresh_id()
    create(
        definer.draft,
        definer.use,
        id=id,
        schema=schema.id,
        name=name,
        owner=definer.owner,
        options=options_of(definer, tree.options),
    )
    _set_owner(definer, id, tree.options)
    return None


def alter_sequence(definer: Definer, tree: Tree) -> str | None:
    path = path_of(tree.sequence)
    if tree.missing_ok and definer.object(path) is None:
        definer.notice(f'relation "{path[-1]}" does not exist, skipping')
        return None
    sequence = definer.sequence(path)
    definer.require_owner(sequence)
    alter_options(definer, sequence, tree.options)
    return None


def alter_options(definer: Definer, sequence: SequenceDescriptor, nodes: Sequence[Tree]) -> None:
    restarts, value = restart_of(nodes)
    node = definer.node
    # Values are not part of a transaction: if this one read them, its own RESTART would conflict with it.
    last = node.sequences.state(node.store.snapshot(), sequence).last_value
    altered = change(
        definer.draft,
        definer.use,
        sequence.id,
        options_of(definer, nodes),
        last_value=value if restarts else last,
    )
    _set_owner(definer, sequence.id, nodes)
    if restarts:
        node.sequences.restart(altered, value, fence=definer.session.locks.fence)


def _set_owner(definer: Definer, id: int, nodes: Sequence[Tree]) -> None:
    for each in items(nodes):
        if each.defname == "owned_by":
            set_owned_by(definer.draft, definer.use, id, _owner(definer, names(child(each, "arg").items)))


def _owner(definer: Definer, path: list[str]) -> OwnedBy | None:
    if path == ["none"]:
        return None
    if len(path) < 2:
        raise SyntaxFault("invalid OWNED BY option", hint="Specify OWNED BY table.column or OWNED BY NONE.")
    relation = definer.relation(path[:-1])
    if not isinstance(relation, Table):
        raise WrongObjectType(f'sequence cannot be owned by relation "{relation.name}"')
    return OwnedBy(relation.id, column_of(relation, path[-1]).id)
