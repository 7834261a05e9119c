"""Stored views: their names mean what they meant when the view was made."""

from collections.abc import Sequence

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors import (
    AnyDescriptor,
    Column,
    Depends,
    SearchPath,
    State,
    Table,
    TypeRef,
    View,
    ViewColumn,
    replace,
)
from tenure.sql.bind import bind_query
from tenure.sql.parameters import Parameters
from tenure.sql.parse import one
from tenure.sql.plan import Lock, Query, Scan, walk
from tenure.sql.relations import Names, Relation
from tenure.sql.views import Recording, seen
from tests.unit.sql.schema import MOOD, TABLES, KnownNames

PEOPLE = TABLES["people"]


class Catalog(KnownNames):
    """Names over descriptors that a test may change."""

    def __init__(self, *descriptors: AnyDescriptor) -> None:
        self.by_id = {each.id: each for each in (MOOD, *TABLES.values(), *descriptors)}

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self.by_id.get(id)

    def relation(self, name: Sequence[str], position: int) -> Relation:
        for each in self.by_id.values():
            if each.name == name[-1] and isinstance(each, Table):
                return each
            if each.name == name[-1] and isinstance(each, View):
                return seen(each, self)
        return super().relation(name, position)


def bound(text: str, names: Names) -> Query:
    found = one(text)
    assert found is not None
    return bind_query(found.tree, names, Parameters())


def view(id: int, name: str, text: str, names: Names, *columns: str) -> View:
    """Made as CREATE VIEW makes it."""
    recording = Recording(names)
    query = bound(text, recording)
    titles = columns or tuple(each.name for each in query.outputs)
    made = [ViewColumn(title, each.type.ref) for title, each in zip(titles, query.outputs, strict=True)]
    return View(
        id, 1, ZERO_AT, name, "root", State.PUBLIC, (), (), 100, 101, text, tuple(made),
        SearchPath(100, ("public",)), recording.sources(), recording.depends(query),
    )  # fmt: skip


def names_of(query: Query) -> list[str]:
    return [each.name for each in query.outputs]


def test_a_view_remembers_what_its_names_meant_and_what_it_reads() -> None:
    made = view(301, "v", "SELECT id, name FROM people p WHERE age > 1", Catalog())
    (source,) = made.sources
    assert (source.name, source.id) == (("people",), 201)
    assert ("city", 4) in source.columns
    assert made.depends == (Depends(201, (1, 2, 3)),)


def test_columns_of_a_view_are_its_own() -> None:
    made = view(301, "v", "SELECT id, name FROM people", Catalog(), "key", "called")
    query = bound("SELECT called, key FROM v", Catalog(made))
    assert [(each.name, each.table, each.number) for each in query.outputs] == [
        ("called", 301, 2),
        ("key", 301, 1),
    ]


def test_a_star_stays_what_it_was_when_columns_are_added() -> None:
    made = view(301, "v", "SELECT * FROM t", Catalog())
    grown = replace(TABLES["t"], columns=(*TABLES["t"].columns, Column(9, "later", TypeRef("int4"))))
    assert names_of(bound("SELECT * FROM v", Catalog(made, grown))) == ["a", "b", "c"]


def test_renamed_tables_and_columns_stay_readable() -> None:
    made = view(301, "v", "SELECT t.a FROM t WHERE b = 'x'", Catalog())
    columns = [replace(each, name=f"new_{each.name}") for each in TABLES["t"].columns]
    renamed = replace(TABLES["t"], name="other", columns=tuple(columns))
    query = bound("SELECT * FROM v", Catalog(made, renamed))
    assert names_of(query) == ["a"]
    assert [each.table.name for each in walk(query.plan) if isinstance(each, Scan)] == ["other"]


def test_a_name_that_was_given_to_another_column_means_the_former_one() -> None:
    made = view(301, "v", "SELECT a FROM t", Catalog())
    a, b, *rest = TABLES["t"].columns
    swapped = replace(TABLES["t"], columns=(replace(a, name="b"), replace(b, name="a"), *rest))
    assert [each.type.sql_name for each in bound("SELECT a FROM v", Catalog(made, swapped)).outputs] == [
        "integer"
    ]


def test_views_read_views() -> None:
    first = view(301, "v", "SELECT id AS key, age FROM people", Catalog())
    second = view(302, "w", "SELECT key FROM v WHERE age > 1", Catalog(first))
    assert second.depends[0] == Depends(301, (1, 2))
    renamed = replace(first, columns=(ViewColumn("id", TypeRef("int8")), *first.columns[1:]))
    assert names_of(bound("SELECT * FROM w", Catalog(renamed, second))) == ["key"]


def test_rows_are_locked_through_a_view() -> None:
    made = view(301, "v", "SELECT b FROM t", Catalog())
    plan = bound("SELECT * FROM v FOR UPDATE", Catalog(made)).plan
    assert [each.table.name for each in walk(plan) if isinstance(each, Lock)] == ["t"]


def test_a_renamed_enum_stays_what_it_is() -> None:
    made = view(301, "v", "SELECT 'ok'::mood AS m", Catalog())
    renamed = replace(MOOD, name="temper")
    assert names_of(bound("SELECT m FROM v", Catalog(made, renamed))) == ["m"]
