"""Plans kept for all sessions of a node: by text, database, search path, user and given types.

A plan made under one lease is valid for a transaction if everything it uses is the same there: each
descriptor in the same version, each name the same object. Under the same lease this always holds. Under a
newer lease, or with other temporary objects, it is checked once, without planning again. The search path
names the session's temporary schema, so sessions that have one share no plans. The check pins the
descriptors, as a transaction must before it uses them.

Invariant (plan-current): a plan runs only in a transaction whose catalog has the versions and names that it
was made with.

Walk: `sql.execution.preparing` asks `find` before it plans, and `keep`s what it has planned.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

from tenure.base.env import Env
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table
from tenure.catalog.descriptors.equal_versions import logical_of
from tenure.catalog.descriptors.temporary_objects import TemporaryObjects
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.name_resolution import Path, find
from tenure.expr.types.datatype import Type
from tenure.sql.execution.statement import Statement
from tenure.sql.session.session_rights import StatementNeeds

PLANS_MAX = 2_000
"""Distinct statements kept; at some 20 KB each, 40 MB at the very most."""

TEXT_MAX = 20_000
"""Longer texts are not kept: they are hardly ever sent twice."""


class PlanKey(NamedTuple):
    text: str
    path: Path
    types: tuple[Type | None, ...]
    variables: tuple[str, ...] = ()
    """Other dependencies of the plan: the time zone."""


class CachedPlan:
    """A plan and the catalog objects it was made with."""

    __slots__ = (
        *("is_kept", "is_of_draft", "lease", "names", "needs", "path", "statement", "temporary", "used_ids"),
        "uses",
        "was_found",
    )

    def __init__(
        self,
        statement: Statement,
        *,
        path: Path,
        uses: dict[int, AnyDescriptor],
        names: dict[tuple[str, ...], int | None],
        lease: Any,
        needs: StatementNeeds,
        is_kept: bool = True,
        is_of_draft: bool = False,
        temporary: TemporaryObjects | None = None,
    ) -> None:
        self.statement = statement
        self.path = path
        self.uses = dict(uses)
        self.used_ids = tuple(uses)
        self.names = tuple(names.items())
        self.lease = lease
        self.needs = needs
        self.is_kept = is_kept
        """It may be run again, in other transactions; else it is planned each time."""
        self.is_of_draft = is_of_draft
        """It uses uncommitted changes of its transaction; after a rollback, versions cannot tell."""
        self.temporary = temporary
        """The temporary objects of the session that it was made with."""
        self.was_found = False
        """Whether it was used since the cache last considered dropping it."""

    def reads(self, tables: set[int]) -> bool:
        """Whether it may read rows of one of these tables."""
        return bool(tables) and not tables.isdisjoint(self._read_tables())

    def _read_tables(self) -> Iterator[int]:
        """Also those that foreign keys of what it writes lead to."""
        yield from self.used_ids
        for used in self.uses.values():
            if isinstance(used, Table):
                yield from (each.target for each in used.foreign_keys)

    def is_good_for(self, use: CatalogUse) -> bool:
        """Pins the descriptors. Under a newer lease, the plan belongs to that one from now on if nothing
        changed."""
        if use.draft or self.is_of_draft:
            return False
        is_same = self.lease is not None and use.lease is self.lease and self.temporary is use.temporary
        if is_same and self.temporary is None and use.take_known(self.uses):
            return True
        descriptor = use.descriptor
        for id, planned in self.uses.items():
            found = descriptor(id)
            if found is not planned and (found is None or not _is_same(found, planned)):
                return False
        if is_same:
            return True
        for name, object in self.names:
            meant = find(use, name, self.path)
            if (None if meant is None else meant.id) != object:
                return False
        if not use.is_mixed:
            self.lease, self.temporary = use.lease, use.temporary
        return True


def _is_same(found: AnyDescriptor, planned: AnyDescriptor) -> bool:
    """Whether a plan with one is as good with the other; a view is read with the rights of its owner."""
    return (logical_of(found), found.owner) == (logical_of(planned), planned.owner)


class PlanCache:
    def __init__(self, env: Env) -> None:
        self._lock = env.lock()
        self._plans: OrderedDict[PlanKey, CachedPlan] = OrderedDict()

    def find(self, key: PlanKey) -> CachedPlan | None:
        """The plan for this key; a transaction checks whether it is still valid."""
        plan = self._plans.get(key)
        if plan is not None:
            plan.was_found = True
        return plan

    def forget(self, key: PlanKey, plan: CachedPlan) -> None:
        """Removes a plan that is no longer valid."""
        with self._lock:
            if self._plans.get(key) is plan:
                del self._plans[key]

    def keep(self, key: PlanKey, plan: CachedPlan) -> None:
        if len(key.text) > TEXT_MAX:
            return
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > PLANS_MAX:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Moves plans that were used since their last turn to the end again: many texts that are sent once
        must not evict those that are sent all the time.
        """
        while True:
            key, plan = self._plans.popitem(last=False)
            if not plan.was_found:
                return
            plan.was_found = False
            self._plans[key] = plan

    def entries(self) -> list[tuple[PlanKey, CachedPlan]]:
        """All plans, the oldest first: for system tables."""
        with self._lock:
            return list(self._plans.items())

    def __len__(self) -> int:
        return len(self._plans)
