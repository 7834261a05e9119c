"""Random work on a catalog, committed and drained at random, against what must be true of it."""

from contextlib import suppress

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tenure.base.errors import UserError
from tenure.catalog.changes.drops import drop_column, drop_database, drop_objects, drop_schemas
from tenure.catalog.changes.object_changes import (
    add_enum_value,
    create_database,
    create_enum,
    create_schema,
    create_table,
    rename_object,
    set_schema,
)
from tenure.catalog.changes.sequence_changes import create_sequence, set_owned_by
from tenure.catalog.changes.table_changes import (
    AddForeignKey,
    DropConstraint,
    DropDefault,
    NamedKeyColumn,
    alter,
    sequences_of,
)
from tenure.catalog.changes.table_parts import staying
from tenure.catalog.changes.view_changes import create_view
from tenure.catalog.descriptors.definitions import (
    ROOT,
    AnyDescriptor,
    Database,
    Depends,
    DescriptorState,
    EnumType,
    Expression,
    OwnedBy,
    Schema,
    SearchPath,
    Sequence,
    Table,
    TypeRef,
    View,
    ViewColumn,
    is_dropped,
    place_of,
)
from tenure.catalog.descriptors.draft_view import own_copy
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.validation import problems
from tests.unit.catalog.tables import ROW_ID, Shelf, column

NAMES = st.sampled_from(["a", "b", "c"])
PICKS = st.integers(0, 50)


def last_column(descriptor: AnyDescriptor) -> int:
    return max(each.id for each in staying(descriptor.columns)) if isinstance(descriptor, Table) else 1


class CatalogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shelf = Shelf()
        self.next_id = 1000

    # ── work ───────────────────────────────────────────────────────────────────────────────────

    @rule(name=NAMES)
    def create_database(self, name: str) -> None:
        with suppress(UserError):
            create_database(
                self.shelf.draft, self.shelf, id=self.fresh(), schema=self.fresh(), name=name, owner=ROOT
            )

    @rule(name=NAMES, pick=PICKS)
    def create_schema(self, name: str, pick: int) -> None:
        if (parent := self.pick(Database, pick)) is not None:
            with suppress(UserError):
                create_schema(
                    self.shelf.draft, self.shelf, id=self.fresh(), database=parent.id, name=name, owner=ROOT
                )

    @rule(name=NAMES, pick=PICKS, enum=st.none() | PICKS, other=st.none() | PICKS, calls=st.none() | PICKS)
    def create_table(
        self, name: str, pick: int, enum: int | None, other: int | None, calls: int | None
    ) -> None:
        parent = self.pick(Schema, pick)
        called = None if calls is None else self.pick(Sequence, calls)
        used = None if enum is None else self.pick(EnumType, enum)
        target = None if other is None else self.pick(Table, other)
        if parent is None:
            return
        columns = [column("id"), column("v")]
        if used is not None:
            columns.append(column("e", type=TypeRef(used.name, enum=used.id)))
        if called is not None:
            columns.append(column("n", default=Expression(b"next", "", (), (called.id,))))
        changes = [] if target is None else [AddForeignKey("fk", ("v",), target.id, (1,))]
        draft = self.shelf.draft.copy()
        with suppress(UserError):
            create_table(
                draft,
                self.shelf,
                id=self.fresh(),
                schema=parent.id,
                name=name,
                owner=ROOT,
                columns=columns,
                key=(NamedKeyColumn("id"),),
                row_id=ROW_ID,
                changes=changes,
            )
            self.shelf.draft = draft

    @rule(name=NAMES, pick=PICKS)
    def create_enum(self, name: str, pick: int) -> None:
        if (parent := self.pick(Schema, pick)) is not None:
            with suppress(UserError):
                create_enum(
                    self.shelf.draft,
                    self.shelf,
                    id=self.fresh(),
                    schema=parent.id,
                    name=name,
                    owner=ROOT,
                    labels=["x"],
                )

    @rule(name=NAMES, pick=PICKS, first=PICKS, second=PICKS, is_replacing=st.booleans())
    def create_view(self, name: str, pick: int, first: int, second: int, is_replacing: bool) -> None:
        parent = self.pick(Schema, pick)
        used = {each.id: each for each in (self.pick(Table, first), self.pick(View, second)) if each}
        if parent is None:
            return
        draft = self.shelf.draft.copy()
        with suppress(UserError):
            create_view(
                draft,
                self.shelf,
                id=self.fresh(),
                schema=parent.id,
                name=name,
                owner=ROOT,
                query="SELECT ...",
                columns=[ViewColumn("id", TypeRef("int4"))],
                path=SearchPath(100, ("public",)),
                depends=[Depends(id, (last_column(each),)) for id, each in used.items()],
                is_replacing=is_replacing,
            )
            self.shelf.draft = draft

    @rule(name=NAMES, pick=PICKS)
    def create_sequence(self, name: str, pick: int) -> None:
        if (parent := self.pick(Schema, pick)) is not None:
            with suppress(UserError):
                create_sequence(
                    self.shelf.draft, self.shelf, id=self.fresh(), schema=parent.id, name=name, owner=ROOT
                )

    @rule(pick=PICKS, owner=st.none() | PICKS)
    def own_sequence(self, pick: int, owner: int | None) -> None:
        sequence = self.pick(Sequence, pick)
        table = None if owner is None else self.pick(Table, owner)
        draft = self.shelf.draft.copy()
        if sequence is not None:
            with suppress(UserError):
                owned_by = None if table is None else OwnedBy(table.id, 2)
                set_owned_by(draft, self.shelf, sequence.id, owned_by)
                self.shelf.draft = draft

    @rule(pick=PICKS)
    def drop_default(self, pick: int) -> None:
        if (table := self.pick(Table, pick)) is not None:
            with suppress(UserError):
                alter(self.shelf.draft, self.shelf, table.id, DropDefault("n"))

    @rule(pick=PICKS, name=st.sampled_from(["v", "e", "n"]), is_cascade=st.booleans())
    def drop_column(self, pick: int, name: str, is_cascade: bool) -> None:
        draft = self.shelf.draft.copy()
        if (table := self.pick(Table, pick)) is not None:
            with suppress(UserError):
                drop_column(draft, self.shelf, table.id, name, is_cascade=is_cascade)
                self.shelf.draft = draft

    @rule(name=NAMES, pick=PICKS)
    def extend_enum(self, name: str, pick: int) -> None:
        if (type_ := self.pick(EnumType, pick)) is not None:
            with suppress(UserError):
                add_enum_value(self.shelf.draft, self.shelf, type_.id, name, before="x")

    @rule(pick=PICKS, name=NAMES)
    def rename(self, pick: int, name: str) -> None:
        if (each := self.pick(None, pick)) is not None:
            with suppress(UserError):
                rename_object(self.shelf.draft, self.shelf, each.id, name)

    @rule(pick=PICKS, parent=PICKS)
    def move(self, pick: int, parent: int) -> None:
        each, schema = self.pick(Table, pick), self.pick(Schema, parent)
        draft = self.shelf.draft.copy()
        if each is not None and schema is not None:
            with suppress(UserError):
                set_schema(draft, self.shelf, each.id, schema.id)
                self.shelf.draft = draft

    @rule(pick=PICKS)
    def drop_key(self, pick: int) -> None:
        if (table := self.pick(Table, pick)) is not None:
            with suppress(UserError):
                alter(self.shelf.draft, self.shelf, table.id, DropConstraint("fk"))

    @rule(pick=PICKS, is_cascade=st.booleans())
    def drop(self, pick: int, is_cascade: bool) -> None:
        each = self.pick(None, pick)
        shelf, contents = self.shelf, [*self.shelf.descriptors]
        draft = shelf.draft.copy()
        with suppress(UserError):
            match each:
                case Table() | EnumType() | View() | Sequence():
                    drop_objects(draft, shelf, [each.id], is_cascade=is_cascade)
                case Schema():
                    drop_schemas(draft, shelf, [each.id], contents, is_cascade=is_cascade)
                case Database():
                    drop_database(draft, shelf, each.id, contents, contents, is_cascade=is_cascade)
            shelf.draft = draft

    # ── transactions ───────────────────────────────────────────────────────────────────────────

    @rule()
    def commit(self) -> None:
        self.shelf.commit()

    @rule()
    def rollback(self) -> None:
        self.shelf.draft = Draft()

    @rule()
    def drain(self) -> None:
        if not self.shelf.draft:
            self.shelf.drain()

    def fresh(self) -> int:
        self.next_id += 1
        return self.next_id

    def pick(self, kind: type | None, number: int) -> AnyDescriptor | None:
        """One of what the transaction sees; nothing is changed while an older change is under way."""
        seen = {**self.shelf.descriptors, **self.shelf.draft.declared}
        fit = [each for each in seen.values() if not is_dropped(each) and isinstance(each, kind or object)]
        if not fit:
            return None
        picked = fit[number % len(fit)]
        committed = self.shelf.descriptors.get(picked.id)
        return None if committed is not None and committed.draining else picked

    # ── what must be true ──────────────────────────────────────────────────────────────────────

    @invariant()
    def names_are_those_of_the_descriptors_and_no_others(self) -> None:
        expected = {}
        for each in self.shelf.descriptors.values():
            for place in (*each.draining, *([] if is_dropped(each) else [place_of(each)])):
                assert place not in expected, "a name stands for two"
                expected[place] = each.id
        assert self.shelf.names == expected

    @invariant()
    def maps_are_the_schemas_there_are(self) -> None:
        mapped = {
            (*key, entry.id)
            for key, entry in self.shelf.entries.items()
            if entry.state is DescriptorState.PUBLIC
        }
        assert mapped == {
            (each.database, each.name, each.id)
            for each in self.shelf.descriptors.values()
            if isinstance(each, Schema) and not is_dropped(each)
        }

    @invariant()
    def nothing_is_orphaned(self) -> None:
        known = self.shelf.descriptors
        for each in known.values():
            if is_dropped(each) or isinstance(each, Database):
                continue
            parent = known[each.database if isinstance(each, Schema) else each.schema]
            assert not is_dropped(parent)
            if not isinstance(each, Schema):
                assert isinstance(parent, Schema) and parent.database == each.database

    @invariant()
    def references_are_known_on_both_sides(self) -> None:
        known = self.shelf.descriptors
        for each in known.values():
            if not isinstance(each, Table) or is_dropped(each):
                continue
            for key in staying(each.foreign_keys):
                target = known[key.target]
                assert isinstance(target, Table) and not is_dropped(target)
                assert any((it.table, it.constraint) == (each.id, key.id) for it in target.inbound)
            for used in staying(each.columns):
                if used.type.enum:
                    type_ = known[used.type.enum]
                    assert isinstance(type_, EnumType) and each.id in type_.referents
                    assert not is_dropped(type_)

    @invariant()
    def views_and_what_they_read_know_each_other(self) -> None:
        known = {id: each for id, each in self.shelf.descriptors.items() if not is_dropped(each)}
        reads = {
            (used.id, id) for id, each in known.items() if isinstance(each, View) for used in each.depends
        }
        for used, view in reads:
            found = known[used]
            assert isinstance(found, Table | View) and view in found.dependents
            for each in known[view].depends:  # type: ignore[union-attr]
                if isinstance(target := known[each.id], Table):
                    assert set(each.columns) <= {column.id for column in staying(target.columns)}
        for id, each in known.items():
            if isinstance(each, Table | View):
                assert {(id, view) for view in each.dependents} <= reads

    @invariant()
    def sequences_know_who_calls_and_owns_them(self) -> None:
        known = {id: each for id, each in self.shelf.descriptors.items() if not is_dropped(each)}
        tables = [each for each in known.values() if isinstance(each, Table)]
        sequences = [each for each in known.values() if isinstance(each, Sequence)]
        called = {(sequence, table.id) for table in tables for sequence in sequences_of(table)}
        assert called == {(each.id, table) for each in sequences for table in each.dependents}
        owned = {(sequence, table.id) for table in tables for sequence in table.sequences}
        assert owned == {(each.id, each.owned_by.table) for each in sequences if each.owned_by}
        for each in sequences:
            if each.owned_by is not None:
                owner = known[each.owned_by.table]
                assert isinstance(owner, Table) and owner.schema == each.schema
                assert each.owned_by.column in {column.id for column in staying(owner.columns)}

    @invariant()
    def descriptors_are_valid_and_the_draft_shows_its_own(self) -> None:
        for each in (*self.shelf.descriptors.values(), *self.shelf.draft.declared.values()):
            assert problems(each) == []
        for id, declared in self.shelf.draft.declared.items():
            assert self.shelf.draft.descriptors[id] == own_copy(declared)


CatalogMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
test_a_catalog_under_random_work = pytest.mark.invariant("I38")(CatalogMachine.TestCase)
