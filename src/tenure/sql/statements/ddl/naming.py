"""Default names of constraints and indexes, as PostgreSQL forms them; and indexes looked up by name.

    t_pkey · t_a_b_key · t_a_idx · t_a_check · t_a_fkey · t_a_seq; then with a number: t_a_key1

An index has no entry of its own in the namespace: it is a part of its table, and belongs to the table's
schema by its name. So a statement that names one asks which tables of the schema have one of that name, as
the newest lease has them in memory. Before the error that there is none, the store is asked. Two
transactions that give the same name to indexes of two tables at the same moment both succeed; the name is
ambiguous from then on, until one of them gets another.

Walk: statements that make tables, indexes and constraints ask for names; DROP, ALTER and RENAME INDEX call
`index`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count

from tenure.base.errors import (
    AmbiguousAlias,
    DuplicateRelation,
    RetryError,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from tenure.catalog.changes.table_parts import staying
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Check,
    ForeignKey,
    Index,
    Schema,
    Table,
    is_dropped,
)
from tenure.catalog.name_resolution import schemas_of
from tenure.sql.statements.ddl.definition import Definer

NAME_BYTES_MAX = 63


def object_name(first: str, second: str, label: str) -> str:
    """As PostgreSQL shortens them: first the longer one of the two."""
    room = NAME_BYTES_MAX - len(label.encode()) - 1 - (1 if second else 0)
    pieces = [first.encode(), second.encode()]
    while len(pieces[0]) + len(pieces[1]) > room:
        at = 0 if len(pieces[0]) > len(pieces[1]) else 1
        pieces[at] = pieces[at][:-1]
    return "_".join([each.decode(errors="ignore") for each in pieces if each] + [label])


def sequence_name(definer: Definer, schema: Schema, table: str, column: str) -> str:
    return _first_free(table, column, "seq", lambda name: definer.is_taken(schema, name))


def index_name(
    definer: Definer, schema: Schema, table: str, columns: Sequence[str], label: str, taken: Collection[str]
) -> str:
    """The default name of an index; `taken` are the constraints and indexes of its own table."""
    return _first_free(
        table,
        "_".join(columns),
        label,
        lambda name: name in taken or definer.is_taken(schema, name) or bool(holders(definer, schema, name)),
    )


def constraint_name(table: Table, columns: Sequence[str], label: str) -> str:
    """The default name of a check or foreign key."""
    taken = names_in(table)
    return _first_free(table.name, "_".join(columns), label, lambda name: name in taken)


def _first_free(first: str, second: str, label: str, is_taken: Callable[[str], bool]) -> str:
    for number in count():
        name = object_name(first, second, f"{label}{number or ''}")
        if not is_taken(name):
            return name
    raise AssertionError("numbers do not end")


def names_in(table: Table) -> set[str]:
    groups: tuple[tuple[Index | Check | ForeignKey, ...], ...] = (
        tuple(staying(table.indexes)),
        tuple(staying(table.checks)),
        tuple(staying(table.foreign_keys)),
    )
    return {each.name for group in groups for each in group}


# ── indexes by name ────────────────────────────────────────────────────────────────────────────


def require_free(definer: Definer, schema: Schema, name: str) -> None:
    """Relations and indexes of a schema share their names."""
    if definer.is_taken(schema, name) or holders(definer, schema, name):
        raise DuplicateRelation(f'relation "{name}" already exists')


def holders(definer: Definer, schema: Schema, name: str) -> list[Table]:
    """The tables of a schema that have an index of this name."""
    return [
        each
        for each in _candidates(definer, schema, name)
        if isinstance(each, Table)
        and each.schema == schema.id
        and not is_dropped(each)
        and _index_named(each, name) is not None
    ]


def _candidates(definer: Definer, schema: Schema, name: str) -> Iterator[AnyDescriptor | None]:
    """As the newest lease has them, with what the transaction itself has done."""
    declared = definer.draft.declared
    yield from declared.values()
    node = definer.node
    version = node.leases.newest
    if version is None:
        yield from (each for each in node.catalog.list(node.store.snapshot()) if each.id not in declared)
        return
    temporary = definer.use.temporary
    if temporary is not None and temporary.schema.id == schema.id:
        yield from (each for each in temporary.objects() if each.id not in declared)
        return
    for id in sorted(version.index_holders(schema.id, name) - declared.keys()):
        yield version.descriptor(id)


def index(definer: Definer, name: Sequence[str]) -> tuple[Table, Index]:
    """The index that a name means. Raises UndefinedTable (42P01)."""
    found = find_index(definer, name)
    if found is not None:
        return found
    other = definer.object(name)
    if other is not None:
        raise WrongObjectType(f'"{name[-1]}" is not an index')
    raise UndefinedTable(f'relation "{".".join(name)}" does not exist')


def find_index(definer: Definer, name: Sequence[str]) -> tuple[Table, Index] | None:
    schemas = schemas_of(definer.names, name[:-1], definer.names.path)
    if not schemas and len(name) > 1:
        raise UndefinedSchema(f'schema "{".".join(name[:-1])}" does not exist')
    for schema in schemas:
        tables = holders(definer, schema, name[-1])
        if len(tables) > 1:
            raise AmbiguousAlias(
                f'the index name "{name[-1]}" is ambiguous',
                detail=f"These tables have one: {', '.join(sorted(each.name for each in tables))}.",
            )
        if tables:
            return _leased(definer, tables[0].id, name[-1])
    _check_store(definer, schemas, name[-1])
    return None


def _leased(definer: Definer, id: int, name: str) -> tuple[Table, Index]:
    """The same as the transaction itself has it: the newest lease may not be its own."""
    table = definer.declared(id)
    found = _index_named(table, name)
    if found is None:
        raise RetryError(f'index "{name}" is newer than the schema lease of this transaction')
    return table, found


def _check_store(definer: Definer, schemas: Collection[Schema], name: str) -> None:
    node = definer.node
    wanted = {each.id for each in schemas}
    for each in node.catalog.list(node.store.snapshot()):
        if not isinstance(each, Table) or each.schema not in wanted or is_dropped(each):
            continue
        if each.id not in definer.draft.declared and _index_named(each, name) is not None:
            node.leases.renew()
            raise RetryError(f'index "{name}" is newer than this node\'s schema lease')


def _index_named(table: Table, name: str) -> Index | None:
    """Not the implicit index of a table without a primary key: the user did not create it."""
    if all(each.name != name for each in table.indexes):
        return None  # the usual case: many tables are searched for one name
    return next(
        (
            each
            for each in staying(table.indexes)
            if each.name == name and (each.is_constraint or each.primary != each.id)
        ),
        None,
    )
