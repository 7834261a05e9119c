"""Dumps as streams: where statements begin and end, and where rows are."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.base.errors import BadDump
from tenure.bulk.dumps import scan
from tenure.bulk.dumps.scan import CopiedRows, DumpLimits, DumpStatement, InsertedRows, Item, items
from tenure.bulk.importing.records import DumpRange
from tests.unit.pipeline.reading.files import Slow


def found(text: str | bytes, most: int = 1 << 20, **limits: int) -> list[Item]:
    data = text.encode() if isinstance(text, str) else text
    return list(items(Slow(data, most), "f", DumpLimits(**limits)))


def refused(text: str | bytes, **limits: int) -> tuple[str, str, str]:
    with pytest.raises(BadDump) as caught:
        found(text, **limits)
    return caught.value.sqlstate, str(caught.value), caught.value.detail


QUOTED = [
    "SELECT ';';",
    "SELECT 'it''s;';",
    r"SELECT E'a\';b';",
    r"SELECT 'a\';",
    'SELECT ";""" FROM t;',
    "SELECT $$;'$$;",
    "SELECT $a$;$b$;$a$;",
    "SELECT a$b$c;",
    "SELECT 1 -- ;'\n;",
    "SELECT 1 /* ; /* ' */ ; */ + 1;",
    "SELECT 3 - -2 / 1;",
    "SELECT date'2020-01-01', name';';",
    "SELECT $1, '$$;$$';",
]


@pytest.mark.parametrize("text", QUOTED)
@pytest.mark.parametrize("most", [1, 3, 1 << 20])
def test_a_statement_ends_where_the_lexer_says(text: str, most: int) -> None:
    assert found(f"{text}\n{text}", most) == [
        DumpStatement(text, 1),
        DumpStatement(text, 2 + text.count("\n")),
    ]


@settings(max_examples=200)
@given(st.lists(st.sampled_from([*QUOTED, "-- a;'\n", "/* ; */", "\n", " "])), st.integers(1, 40))
def test_pieces_of_any_length_give_the_same(pieces: list[str], most: int) -> None:
    text = "".join(pieces)
    assert found(text, most) == found(text)
    assert [each.text for each in found(text)] == [each for each in pieces if each in QUOTED]


def test_rows_of_copy_are_ranges_with_their_lines() -> None:
    text = "-- x\n\nCOPY t (a) FROM stdin;\n1\n\\\\.\n;'\n\\.\n\nCOPY u FROM stdin;\n\\.\nSELECT 1;\n"
    start = text.index("1\n")
    assert found(text) == [
        CopiedRows("COPY t (a) FROM stdin;", 3, (DumpRange(start, text.index("\\.\n\nCOPY"), 4),)),
        CopiedRows("COPY u FROM stdin;", 9, ()),
        DumpStatement("SELECT 1;", 11),
    ]
    assert found(text, 1) == found(text)


def test_large_blocks_are_cut_at_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "RANGE_BYTES", 10)
    head = "COPY t FROM stdin;\n"
    text = head + "".join(f"row {n}\n" for n in range(10)) + "\\."
    (item,) = found(text, 4)
    assert isinstance(item, CopiedRows)
    assert item.ranges[0].start == len(head)
    assert item.ranges[-1].end == len(text) - 2
    assert [each.end for each in item.ranges[:-1]] == [each.start for each in item.ranges[1:]]
    for each in item.ranges:
        assert text.encode()[each.start : each.end] == b"".join(
            b"row %d\n" % n for n in range(each.line - 2, each.line - 2 + (each.end - each.start) // 6)
        )


def test_inserts_into_the_same_columns_are_one_block_of_rows() -> None:
    a = "INSERT INTO s.t VALUES (1, 'x;\n''y', NULL, -1.5e3, true, DEFAULT);\n"
    b = 'INSERT INTO "T" ("a b", c) OVERRIDING SYSTEM VALUE VALUES\n\t(1, 2),\n\t(3, 4);\n'
    text = a + a + b + a
    assert found(text) == [
        InsertedRows("INSERT INTO s.t VALUES", 1, (DumpRange(0, 2 * len(a) - 1, 1),)),
        InsertedRows(
            'INSERT INTO "T" ("a b", c) OVERRIDING SYSTEM VALUE VALUES',
            5,
            (DumpRange(2 * len(a), 2 * len(a) + len(b) - 1, 5),),
        ),
        InsertedRows("INSERT INTO s.t VALUES", 8, (DumpRange(2 * len(a) + len(b), len(text) - 1, 8),)),
    ]
    assert found(text, 5) == found(text)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (pg_sleep(1));",
        "INSERT INTO t VALUES (1 + 1);",
        "INSERT INTO t SELECT 1;",
        "INSERT INTO t VALUES (1) RETURNING a;",
        "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING;",
        "INSERT INTO t VALUES ((SELECT 1));",
    ],
)
def test_an_insert_of_anything_but_constants_is_a_statement(text: str) -> None:
    assert found(text) == [DumpStatement(text, 1)]


def test_what_newer_versions_write_for_psql_is_passed_over() -> None:
    text = "\\restrict abc\nSELECT 1;\n\\connect db\n\\unrestrict abc"
    assert found(text) == [DumpStatement("SELECT 1;", 2)]


@pytest.mark.parametrize("command", [r"\! rm -rf /", r"\i other.sql", r"\copy t from x", r"\o x", r"\gexec"])
def test_other_commands_of_psql_are_refused(command: str) -> None:
    sqlstate, message, detail = refused(f"SELECT 1;\n{command}\n")
    assert sqlstate == "0A000"
    assert command.split()[0] in message
    assert detail == 'file "f", line 2'


def test_what_has_no_end_is_refused_with_where_it_begins() -> None:
    assert refused("SELECT 1;\nSELECT 'a;\n\n")[2] == 'file "f", line 2'
    assert refused("\n/* a\n")[2] == 'file "f", line 2'
    assert refused("SELECT $x$ ;")[1] == "the statement has no end"
    assert refused("\nCOPY t FROM stdin;\n1\n2\n") == (
        "22P04",
        r"the rows of COPY do not end with \.",
        'file "f", line 2',
    )
    assert refused("COPY t FROM stdin; 1\n\\.\n")[1] == "the rows of COPY must start on the next line"


@pytest.mark.parametrize(
    "begin", ["SELECT '", "SELECT 1 +", "/*", "-- ", "SELECT $$", "INSERT INTO t VALUES ('"]
)
def test_what_never_ends_costs_no_more_than_the_limit(begin: str) -> None:
    class Endless(io.BytesIO):
        given = 0

        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            self.given += size
            assert self.given < 64 << 20, "it reads on"
            return begin.encode() if self.given == size else b"x" * size

    with pytest.raises(BadDump) as caught:
        list(items(Endless(), "f"))
    assert caught.value.sqlstate == "54000"


def test_an_endless_row_costs_no_more_than_the_limit() -> None:
    sqlstate, _, detail = refused(b"COPY t FROM stdin;\n" + b"x" * 5_000_000, insert_bytes_max=1 << 20)
    assert (sqlstate, detail) == ("54000", 'file "f", line 2')


def test_statements_and_blocks_are_counted() -> None:
    assert refused("SELECT 1;\n" * 11, items_max=10)[2] == 'file "f", line 11'
    alternating = "INSERT INTO a VALUES (1);\nINSERT INTO b VALUES (1);\n" * 6
    assert "more than 10" in refused(alternating, items_max=10)[1]


def test_what_is_no_text_is_refused_with_its_line() -> None:
    assert refused(b"SELECT 1;\nSELECT '\xff';")[::2] == ("22021", 'file "f", line 2')
