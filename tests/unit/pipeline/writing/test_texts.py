"""Files byte for byte as PostgreSQL's COPY TO and row_to_json have them."""

import json
from collections.abc import Iterator
from datetime import UTC

import pytest

from tenure.expr.types.zones import zone_named
from tenure.pipeline.writing.cells import cells_of_rows
from tenure.pipeline.writing.csv_rows import csv_bytes, csv_header
from tenure.pipeline.writing.formats import CsvOut
from tenure.pipeline.writing.ndjson_rows import ndjson_bytes
from tests.postgres_server import Server
from tests.unit.pipeline.writing.oracle import ROWS, TYPES, World


@pytest.fixture(scope="module")
def world(postgres: Server) -> Iterator[World]:
    world = World(postgres)
    yield world
    world.connection.close()


PLAIN = CsvOut()


@pytest.mark.invariant("texts-same")
@pytest.mark.parametrize("place", range(len(TYPES)), ids=TYPES)
def test_a_column_is_written_as_copy_writes_it(world: World, place: int) -> None:
    expected = world.copied("", place)
    assert bytes(csv_bytes(world.cells(place), ROWS, PLAIN, UTC)) == expected
    from_rows = cells_of_rows([[row[place]] for row in world.rows], [world.kinds[place]])
    assert bytes(csv_bytes(from_rows, ROWS, PLAIN, UTC)) == expected


def test_whole_rows_are_written_as_copy_writes_them(world: World) -> None:
    assert bytes(csv_bytes(world.cells(), ROWS, PLAIN, UTC)) == world.copied("")


@pytest.mark.parametrize("delimiter", ["|", "\t", ";", ":", "1", " "])
def test_any_delimiter_does_what_copys_does(world: World, delimiter: str) -> None:
    csv = CsvOut(delimiter=delimiter)
    assert bytes(csv_bytes(world.cells(), ROWS, csv, UTC)) == world.copied(f", DELIMITER E'{delimiter}'")


@pytest.mark.parametrize("null", ["NULL", "0", "a", "\\N"])
def test_any_text_for_null_does_what_copys_does(world: World, null: str) -> None:
    csv = CsvOut(null=null)
    assert bytes(csv_bytes(world.cells(), ROWS, csv, UTC)) == world.copied(f", NULL '{null}'")


def test_a_header_is_written_as_copy_writes_it(world: World) -> None:
    names = ["a", 'b"c', "d,e", ""]
    assert csv_header(names, PLAIN) == b'a,"b""c","d,e",""\n'


def test_timestamps_are_written_in_the_zone_of_the_session(world: World) -> None:
    place = TYPES.index("timestamptz")
    world.connection.execute("SET timezone = 'Europe/Berlin'")
    expected = world.copied("", place)
    world.connection.execute("SET timezone = 'UTC'")
    assert bytes(csv_bytes(world.cells(place), ROWS, PLAIN, zone_named("Europe/Berlin"))) == expected


def test_no_columns_are_empty_lines() -> None:
    assert csv_bytes([], 3, PLAIN, UTC) == b"\n\n\n"


def test_what_a_spreadsheet_would_compute_gets_an_apostrophe_if_asked_for(world: World) -> None:
    place = TYPES.index("text")
    guarded = bytes(csv_bytes(world.cells(place), ROWS, CsvOut(guards_formulas=True), UTC)).decode()
    plain = bytes(csv_bytes(world.cells(place), ROWS, PLAIN, UTC)).decode()
    assert "\n=1+1\n" in plain and "\n'=1+1\n" in guarded
    for text in ("\n=1+1\n", "\n+1\n", "\n-1\n", "\n@x\n", "\n\tx\n"):
        assert text in plain
        assert text not in guarded
    numbers = TYPES.index("int4")
    assert bytes(csv_bytes(world.cells(numbers), ROWS, CsvOut(guards_formulas=True), UTC)) == world.copied(
        "", numbers
    )


@pytest.mark.parametrize("place", range(len(TYPES)), ids=TYPES)
def test_a_member_is_written_as_row_to_json_writes_it(world: World, place: int) -> None:
    name = f"c{place}"
    query = f"SELECT row_to_json(t)::text FROM (SELECT n, {name} FROM world) t ORDER BY n"
    found = [row[0] for row in world.connection.execute(query)]
    expected = ["{" + row.partition(",")[2].replace("\n", " ") for row in found]
    lines = bytes(ndjson_bytes([name], world.cells(place), ROWS, UTC)).decode().splitlines()
    assert lines == expected
    from_rows = cells_of_rows([[row[place]] for row in world.rows], [world.kinds[place]])
    assert bytes(ndjson_bytes([name], from_rows, ROWS, UTC)).decode().splitlines() == expected


def test_every_line_is_an_object(world: World) -> None:
    names = [column.name for column in world.columns]
    lines = bytes(ndjson_bytes(names, world.cells(), ROWS, UTC)).decode().split("\n")
    assert lines.pop() == ""
    assert [set(json.loads(line)) for line in lines] == [set(names)] * ROWS
