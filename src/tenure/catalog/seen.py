"""How a change looks to those who must not see it whole, or not as it is stored.

    held_back   to everybody, before the version that shows it: with its stages, without the rest
    own_copy    to the transaction that declared it, before its commit

Walk: `catalog.drafts` keeps own copies; `schema_change` publishes stages held back.
"""

from typing import TypeVar

from tenure.catalog.descriptors import (
    AnyDescriptor,
    Check,
    Column,
    ElementState,
    ForeignKey,
    Index,
    Table,
    is_dropped,
    replace,
)
from tenure.catalog.elements import (
    has_additions,
    is_adding,
    is_dropping,
    is_finished,
    is_moving,
    is_prepared,
    settled_state,
)

E = TypeVar("E", Column, Index, Check, ForeignKey)
C = TypeVar("C", Check, ForeignKey)


def held_back(declared: Table, *, before: Table) -> Table:
    """The change without what needs no stages: names, defaults, types, owner and the like.

    Stages before the one that shows a change are published like this, since readers must not see
    half of it, and a way back must not need to know what was there before.
    """
    declared = _without_the_unseen(declared, before)
    if is_prepared(declared) and not has_additions(declared):
        return declared
    columns = {each.id: each for each in before.columns}
    return replace(
        declared,
        name=before.name,
        owner=before.owner,
        state=before.state,
        privileges=before.privileges,
        draining=before.draining,
        database=before.database,
        schema=before.schema,
        comment=before.comment,
        is_locked=before.is_locked,
        columns=tuple(
            replace(each, name=known.name, type=known.type, default=known.default)
            if (known := columns.get(each.id)) is not None
            else each
            for each in declared.columns
        ),
        indexes=_names_of(declared.indexes, before.indexes),
        checks=_fresh(_names_of(declared.checks, before.checks), before.checks),
        foreign_keys=_fresh(_names_of(declared.foreign_keys, before.foreign_keys), before.foreign_keys),
    )


def own_copy(descriptor: AnyDescriptor) -> AnyDescriptor:
    """How the transaction that declared a change sees it before its commit.

    Columns are there and those dropped are gone; constraints hold for what it writes. New indexes
    are not there yet: they are completed at its commit, from all its rows at once. A column whose
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
        indexes=tuple(each for each in descriptor.indexes if not is_adding(each) and _uses(each, kept)),
        checks=tuple(
            each
            for each in descriptor.checks
            if kept.issuperset(each.expression.columns)
            and (not is_dropping(each) or rewritten.intersection(each.expression.columns))
        ),
        foreign_keys=tuple(each for each in descriptor.foreign_keys if not is_dropping(each)),
    )


def _without_the_unseen(declared: Table, before: Table) -> Table:
    """Without constraints that were added NOT VALID and dropped by the same transaction."""
    checks = {each.id for each in before.checks}
    keys = {each.id for each in before.foreign_keys}
    return replace(
        declared,
        checks=tuple(
            each for each in declared.checks if each.id in checks or each.not_null or not is_dropping(each)
        ),
        foreign_keys=tuple(
            each for each in declared.foreign_keys if each.id in keys or not is_dropping(each)
        ),
    )


def _names_of(declared: tuple[E, ...], before: tuple[E, ...]) -> tuple[E, ...]:
    """With their former names; what is shown without any stage is not there yet."""
    names = {each.id: each.name for each in before}
    return tuple(
        replace(each, name=names.get(each.id, each.name))
        for each in declared
        if each.id in names or is_moving(each)
    )


def _fresh(declared: tuple[C, ...], before: tuple[C, ...]) -> tuple[C, ...]:
    """One that was added NOT VALID by the same transaction is an addition like any other."""
    known = {each.id for each in before}
    return tuple(
        each if each.id in known or not is_adding(each) else replace(each, is_validated=True)
        for each in declared
    )


def _uses(index: Index, kept: set[int]) -> bool:
    """An index that is going is still kept up; one over a column that is gone cannot be."""
    return all(part.column in kept for part in index.parts)
