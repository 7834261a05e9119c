"""The view that a transaction has of its own uncommitted schema change.

Walk: `catalog.descriptors.drafts` keeps the result of `own_copy`, for the transaction that declared the
change.
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
    """The descriptor as the transaction that declared a change sees it before its commit.

    New columns exist and dropped ones are gone; constraints hold for its writes. New indexes do not exist
    yet: they are completed at its commit, from all its rows at once. Dropped indexes are not read and get no
    more entries: when it commits, no other transaction reads them either. A column whose type changes by a
    rewrite still has its former type; one of a dropped primary key is hidden.
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
    """Not even entries of an index over a dropped column can be removed: the index is emptied later."""
    return all(part.column in kept for part in index.parts)
