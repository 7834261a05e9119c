"""Sequences in the catalog: created, altered, owned by a column.

    option      ascending              descending
    minimum     1                      the type's least
    maximum     the type's greatest    -1
    start       minimum                maximum

A descriptor defines the possible values; `table.sequences` stores the next one. A sequence that a column owns
is dropped with it: the column's table has it among its `sequences`. A table whose defaults call a sequence is
among its `dependents`.

Walk: `sql` calls these for CREATE and ALTER SEQUENCE, for serial and identity columns; it asks
`catalog.changes.drops` about the owner of a sequence.
"""

from tenure.base.errors import InvalidParameter, NotSupported, UndefinedColumn, WrongState
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.changes.drops import disown
from tenure.catalog.changes.free_names import require_free, schema_of
from tenure.catalog.changes.table_changes import CatalogBelow, descriptor_of, table_of
from tenure.catalog.changes.table_parts import staying
from tenure.catalog.descriptors.definitions import (
    DescriptorState,
    Grant,
    OwnedBy,
    Sequence,
    Table,
    TypeRef,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.kv.records import Record

RANGES = {"int2": (-(1 << 15), (1 << 15) - 1), "int4": (-(1 << 31), (1 << 31) - 1)}
RANGES["int8"] = (-(1 << 63), (1 << 63) - 1)
_SQL_NAMES = {"int2": "smallint", "int4": "integer", "int8": "bigint"}


class SequenceOptions(Record, frozen=True):
    """The options that a statement gives a sequence; None where it gives none."""

    type: TypeRef | None = None
    start: int | None = None
    increment: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    cache: int | None = None
    is_cycle: bool | None = None
    has_no_minimum: bool = False
    """NO MINVALUE: the default again."""
    has_no_maximum: bool = False


NOTHING = SequenceOptions()


def create_sequence(
    draft: Draft,
    catalog: CatalogBelow,
    *,
    id: int,
    schema: int,
    name: str,
    owner: str,
    options: SequenceOptions = NOTHING,
    privileges: tuple[Grant, ...] = (),
) -> Sequence:
    parent = schema_of(draft, catalog, schema)
    bare = Sequence(
        id,
        1,
        ZERO_AT,
        name,
        owner,
        DescriptorState.PUBLIC,
        privileges,
        (),
        database=parent.database,
        schema=schema,
        value_type=TypeRef("int8"),
        start=1,
        increment=1,
        minimum=1,
        maximum=RANGES["int8"][1],
    )
    sequence = _with_options(bare, options, is_new=True)
    require_free(draft, catalog, sequence)
    draft.create(sequence)
    draft.rely_on(parent)
    return sequence


def alter_sequence(
    draft: Draft, catalog: CatalogBelow, id: int, options: SequenceOptions, *, last_value: int | None = None
) -> Sequence:
    """Changes its options; `last_value`, the current or restarted value, has to fit the new ones."""
    former = sequence_of(draft, catalog, id)
    sequence = _with_options(former, options, is_new=False)
    if last_value is not None:
        _require_within(sequence, "RESTART", last_value)
    draft.declare(sequence, made_from=former.version)
    return sequence


def set_owned_by(draft: Draft, catalog: CatalogBelow, id: int, owner: OwnedBy | None) -> Sequence:
    """Makes a column own a sequence, or none."""
    sequence = sequence_of(draft, catalog, id)
    if sequence.owned_by == owner:
        return sequence
    if sequence.owned_by is not None:
        _require_no_identity(draft, catalog, sequence, sequence.owned_by)
        disown(draft, catalog, sequence.owned_by.table, id)
    if owner is not None:
        _give_to(draft, catalog, sequence, table_of(draft, catalog, owner.table), owner.column)
    sequence = replace(sequence, owned_by=owner)
    draft.declare(sequence, made_from=sequence.version)
    return sequence


def sequence_of(draft: Draft, catalog: CatalogBelow, id: int) -> Sequence:
    sequence = descriptor_of(draft, catalog, id)
    assert isinstance(sequence, Sequence), f"{id} is no sequence"
    return sequence


def _give_to(draft: Draft, catalog: CatalogBelow, sequence: Sequence, table: Table, column: int) -> None:
    if sequence.owner != table.owner:
        raise WrongState("sequence must have same owner as table it is linked to")
    if sequence.schema != table.schema:
        raise WrongState("sequence must be in same schema as table it is linked to")
    if all(each.id != column for each in staying(table.columns)):
        raise UndefinedColumn(f'column {column} of relation "{table.name}" does not exist')
    altered = replace(table, sequences=(*table.sequences, sequence.id))
    draft.declare(altered, made_from=table.version)


def _require_no_identity(draft: Draft, catalog: CatalogBelow, sequence: Sequence, owner: OwnedBy) -> None:
    table = descriptor_of(draft, catalog, owner.table)
    if not isinstance(table, Table) or is_dropped(table):
        return
    if any(each.id == owner.column and each.identity for each in staying(table.columns)):
        raise NotSupported(
            "cannot change ownership of identity sequence",
            detail=f'Sequence "{sequence.name}" is linked to table "{table.name}".',
        )


# ── options ────────────────────────────────────────────────────────────────────────────────────


def _with_options(sequence: Sequence, options: SequenceOptions, *, is_new: bool) -> Sequence:
    """In PostgreSQL's order, with its error messages."""
    type_ = options.type or sequence.value_type
    if type_.name not in RANGES or type_.is_array:
        raise InvalidParameter("sequence type must be smallint, integer, or bigint")
    increment = sequence.increment if options.increment is None else options.increment
    if increment == 0:
        raise InvalidParameter("INCREMENT must not be zero")
    minimum, maximum = _bounds(sequence, options, type_.name, increment > 0, is_new=is_new)
    start = sequence.start if options.start is None else options.start
    if is_new and options.start is None:
        start = minimum if increment > 0 else maximum
    changed = replace(
        sequence,
        value_type=type_,
        increment=increment,
        minimum=minimum,
        maximum=maximum,
        start=start,
        cache=sequence.cache if options.cache is None else options.cache,
        is_cycle=sequence.is_cycle if options.is_cycle is None else options.is_cycle,
    )
    _require_sound(changed)
    return changed


def _bounds(
    sequence: Sequence, options: SequenceOptions, type_: str, is_ascending: bool, *, is_new: bool
) -> tuple[int, int]:
    least, greatest = RANGES[type_]
    former_least, former_greatest = RANGES[sequence.value_type.name]
    minimum, maximum = sequence.minimum, sequence.maximum
    if is_new or options.has_no_minimum:
        minimum = 1 if is_ascending else least
    elif options.type is not None and minimum == former_least:
        minimum = least  # the former type's bound, which nobody chose
    if is_new or options.has_no_maximum:
        maximum = greatest if is_ascending else -1
    elif options.type is not None and maximum == former_greatest:
        maximum = greatest
    return (
        minimum if options.minimum is None else options.minimum,
        maximum if options.maximum is None else options.maximum,
    )


def _require_sound(sequence: Sequence) -> None:
    least, greatest = RANGES[sequence.value_type.name]
    named = _SQL_NAMES[sequence.value_type.name]
    for word, bound in (("MAXVALUE", sequence.maximum), ("MINVALUE", sequence.minimum)):
        if not least <= bound <= greatest:
            raise InvalidParameter(f"{word} ({bound}) is out of range for sequence data type {named}")
    if sequence.minimum >= sequence.maximum:
        raise InvalidParameter(
            f"MINVALUE ({sequence.minimum}) must be less than MAXVALUE ({sequence.maximum})"
        )
    _require_within(sequence, "START", sequence.start)
    if sequence.cache <= 0:
        raise InvalidParameter(f"CACHE ({sequence.cache}) must be greater than zero")


def _require_within(sequence: Sequence, word: str, value: int) -> None:
    if value < sequence.minimum:
        raise InvalidParameter(f"{word} value ({value}) cannot be less than MINVALUE ({sequence.minimum})")
    if value > sequence.maximum:
        raise InvalidParameter(f"{word} value ({value}) cannot be greater than MAXVALUE ({sequence.maximum})")
