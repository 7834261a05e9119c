"""How a change looks to the transaction that declared it, before its commit.

Walk: `catalog.descriptors.drafts` keeps what `own_copy` gives, for the transaction that changes it.
"""

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    ElementState,
    Index,
    Table,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.elements import (
    is_adding,
    is_dropping,
    is_finished,
    settled_state,
)


def own_copy(descriptor: AnyDescriptor) -> AnyDescriptor:
    """How the transaction that declared a change sees it before its commit.

    Columns are there and those dropped are gone; constraints hold for what it writes. New indexes
    are not there yet: they are completed at its commit, from all its rows at once. Those that go are not
    read and get no more entries: when it commits, nobody else reads them either. A column whose
    type changes by a rewrite still has its former type; one of a primary key that goes is hidden.
    """
    if not isinstance(descriptor, Table) or is_finished(descriptor) or is_dropped(descriptor):
        return descriptor
    loosened = {each.not_null for each in descriptor.checks if is_dropping(each)}
    key = {part.column for part in descriptor.index(descriptor.primary).parts}
    columns = tuple(
        replace(
            each,
            state=ElementState.PUBLIC,
            is_nullable=each.is_nullable or each.id in loosened,
            is_hidden=each.is_hidden or is_dropping(each),
        )
        for each in descriptor.columns
        if not each.replaces and (not is_dropping(each) or each.id in key)
    )
    kept = {column.id for column in columns}
    rewritten = {column.replaces for column in descriptor.columns if column.replaces}
    return replace(
        descriptor,
        state=settled_state(descriptor.state),
        columns=columns,
        indexes=tuple(
            replace(each, state=ElementState.DELETE_ONLY) if is_dropping(each) else each
            for each in descriptor.indexes
            if not is_adding(each) and _uses(each, kept)
        ),
        checks=tuple(
            each
            for each in descriptor.checks
            if kept.issuperset(each.expression.columns)
            and (not is_dropping(each) or rewritten.intersection(each.expression.columns))
        ),
        foreign_keys=tuple(each for each in descriptor.foreign_keys if not is_dropping(each)),
    )


def _uses(index: Index, kept: set[int]) -> bool:
    """Of an index over a column that is gone not even entries can be removed: it is emptied later."""
    return all(part.column in kept for part in index.parts)
