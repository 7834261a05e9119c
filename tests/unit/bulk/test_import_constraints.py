"""Every constraint of a table holds for what is imported, and a failed import leaves the table as it was."""

import pytest

from tests.unit.bulk.imports import Importing


def test_rows_are_there_in_all_indexes(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text, u int UNIQUE)")
    importing.done("CREATE INDEX by_a ON t (a)")
    said = importing.csv("2,y,20\n1,x,10\n3,,\n")
    assert importing.counts(said) == ("3", "6", "0")
    assert importing.rows() == [("1", "x", "10"), ("2", "y", "20"), ("3", None, None)]
    assert importing.rows("SELECT id FROM t WHERE a = 'y'") == [("2",)]
    assert importing.rows("SELECT id FROM t WHERE u = 10") == [("1",)]


def test_rows_join_those_that_are_there(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text UNIQUE)")
    importing.done("INSERT INTO t VALUES (2, 'two'), (5, 'five'), (7, 'seven')")
    importing.done("UPDATE t SET a = 'FIVE' WHERE id = 5")
    importing.done("DELETE FROM t WHERE id = 7")
    assert importing.counts(importing.csv("1,one\n3,three\n")) == ("2", "2", "0")
    importing.done("UPDATE t SET a = 'THREE' WHERE id = 3")
    assert importing.counts(importing.csv("4,four\n7,7\n")) == ("2", "2", "0")
    expected = [("1", "one"), ("2", "two"), ("3", "THREE"), ("4", "four"), ("5", "FIVE"), ("7", "7")]
    assert importing.rows() == expected
    assert importing.rows("SELECT id FROM t WHERE a = 'THREE'") == [("3",)]


def test_a_row_that_was_deleted_before_can_be_imported_changed_and_deleted(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text UNIQUE)")
    importing.done("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    importing.done("DELETE FROM t")
    importing.csv("1,x\n2,y\n")
    assert importing.done("UPDATE t SET a = 'z' WHERE a = 'y'").tag == "UPDATE 1"
    assert importing.say("INSERT INTO t VALUES (3, 'x')").sqlstate == "23505"
    assert importing.done("DELETE FROM t").tag == "DELETE 2"
    assert importing.rows() == []


def test_the_past_is_as_it_was(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    importing.done("INSERT INTO t VALUES (1, 'old')")
    ((before,),) = importing.rows("SELECT cluster_logical_timestamp()::text")
    importing.done("UPDATE t SET a = 'new'")
    importing.csv("2,imported\n")
    assert importing.rows(f"SELECT * FROM t AS OF SYSTEM TIME '{before}'") == [("1", "old")]
    assert importing.rows() == [("1", "new"), ("2", "imported")]


def test_two_equal_rows_of_the_input_are_named(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    first = importing.file("first.csv", "1,a\n2,b\n")
    second = importing.file("second.csv", "3,c\n4,d\n2,e\n")
    said = importing.say(f"IMPORT INTO t CSV DATA ('{first}', '{second}')")
    assert said.sqlstate == "23505"
    assert said.message == 'duplicate key value violates unique constraint "t_pkey"'
    assert said.detail == (
        f'Key (id)=(2) is there twice. It is in file "{first}", line 2, and in file "{second}", line 3.'
    )
    assert importing.rows() == []


def test_a_row_equal_to_one_of_the_table_is_named(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text, UNIQUE (a, id))")
    importing.csv("1,a\n")
    importing.done("INSERT INTO t VALUES (2, 'b')")
    for id in (1, 2):
        said = importing.csv(f"5,e\n{id},x\n")
        assert said.sqlstate == "23505"
        assert f"Key (id)=({id}) is there twice. It is in the table, and in file" in said.detail
        assert said.detail.endswith(", line 2.")
    assert importing.rows() == [("1", "a"), ("2", "b")]


def test_unique_indexes_count_too(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text, b int, UNIQUE (a, b))")
    assert importing.csv("1,x,1\n2,x,\n3,x,\n4,,1\n").sqlstate == ""
    said = importing.csv("5,x,1\n")
    assert (said.sqlstate, said.message) == (
        "23505",
        'duplicate key value violates unique constraint "t_a_b_key"',
    )
    assert "Key (a, b)=(x, 1)" in said.detail
    assert importing.csv("6,y,1\n7,y,1\n").sqlstate == "23505"
    assert len(importing.rows()) == 4


def test_a_partial_unique_index_has_only_rows_for_which_its_predicate_holds(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text, is_live bool)")
    importing.done("CREATE UNIQUE INDEX one_live ON t (a) WHERE is_live")
    said = importing.csv("1,x,true\n2,x,false\n3,x,\n")
    assert importing.counts(said) == ("3", "1", "0")
    assert importing.csv("4,x,true\n").sqlstate == "23505"


def test_null_where_there_must_be_none(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text NOT NULL)")
    said = importing.csv("1,x\n2,\n")
    assert said.sqlstate == "23502"
    assert said.message == 'null value in column "a" of relation "t" violates not-null constraint'
    assert said.detail.endswith('.csv", line 2, column a')
    assert importing.rows() == []


@pytest.mark.parametrize(
    ("condition", "good", "bad"),
    [
        ("n > 0", "1", "0"),
        ("n BETWEEN 1 AND 9 AND n <> 5", "4", "5"),
        ("n IN (1, 2, 3)", "3", "4"),
        ("n % 2 = 0", "4", "5"),
        ("n IS NOT NULL", "0", ""),
        ("10 / n > 1", "2", "20"),
    ],
)
def test_checks(importing: Importing, condition: str, good: str, bad: str) -> None:
    importing.done(f"CREATE TABLE t (id int PRIMARY KEY, n int CONSTRAINT c CHECK ({condition}))")
    assert importing.csv(f"1,{good}\n").sqlstate == ""
    said = importing.csv(f"2,{good}\n3,{bad}\n")
    assert said.sqlstate == "23514"
    assert said.message == 'new row for relation "t" violates check constraint "c"'
    assert said.detail.endswith(", line 2")
    assert importing.rows("SELECT id FROM t") == [("1",)]


def test_a_check_that_cannot_be_computed_refuses_its_row(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, n int CHECK (10 / n > 1))")
    said = importing.csv("1,2\n2,0\n3,\n4,5\n", options="WITH max_bad_rows = 1")
    assert importing.counts(said) == ("3", "0", "1")
    assert importing.csv("5,0\n").sqlstate == "22012"


def test_checks_of_numbers_texts_and_times(importing: Importing) -> None:
    importing.done(
        "CREATE TABLE t (id int PRIMARY KEY, n numeric(8,2) CHECK (n >= 0.5), s text CHECK (length(s) <= 3),"
        " d date CHECK (d > '2020-01-01'), f float8 CHECK (f < 1.5))"
    )
    good = "1,0.50,äöü,2020-01-02,1.25\n2,NaN,,,\n"
    assert importing.csv(good).sqlstate == ""
    for bad in ("3,0.49,,,", "3,,abcd,,", "3,,,2020-01-01,", "3,,,,1.5", "3,,,,NaN"):
        assert importing.csv(f"{bad}\n").sqlstate == "23514", bad


def test_foreign_keys_lead_to_rows_of_the_target(importing: Importing) -> None:
    importing.done("CREATE TABLE p (a int, b text, PRIMARY KEY (a, b))")
    importing.done(
        "CREATE TABLE t (id int PRIMARY KEY, b text, a int, FOREIGN KEY (a, b) REFERENCES p (a, b))"
    )
    importing.csv("1,x\n2,y\n3,z\n", "p")
    importing.done("INSERT INTO p VALUES (4, 'new')")
    importing.done("DELETE FROM p WHERE a = 3")
    assert importing.csv("1,x,1\n2,y,2\n3,x,1\n4,,1\n5,new,4\n").sqlstate == ""
    for missing in ("z,3", "x,2", "q,9"):
        said = importing.csv(f"6,x,1\n7,{missing}\n")
        assert said.sqlstate == "23503"
        assert said.message == ('insert or update on table "t" violates foreign key constraint "t_a_b_fkey"')
        b, a = missing.split(",")
        assert said.detail.startswith(f'Key (a, b)=({a}, {b}) is not present in table "p". It is in file')
        assert said.detail.endswith(", line 2.")
    assert len(importing.rows()) == 5


def test_rows_may_refer_to_rows_of_the_same_import(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, parent int REFERENCES t)")
    importing.done("INSERT INTO t VALUES (1, NULL)")
    assert importing.csv("2,1\n3,4\n4,3\n5,5\n").sqlstate == ""
    assert importing.csv("6,7\n").sqlstate == "23503"
    assert len(importing.rows()) == 5


def test_a_key_that_is_too_long_refuses_its_row(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    importing.done("CREATE INDEX ON t (a)")
    said = importing.csv(f"1,x\n2,{'y' * 5000}\n3,z\n", options="WITH max_bad_rows = 1")
    assert importing.counts(said) == ("2", "2", "1")
    assert importing.csv(f"4,{'y' * 5000}\n").sqlstate == "54000"


def test_a_failed_import_leaves_the_table_public_and_nothing_in_the_lake(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY)")
    lake = importing.node.lake
    assert lake is not None
    before = list(lake.manifests.all(lake.store.snapshot()))
    assert importing.csv("1\n1\n").sqlstate == "23505"
    assert list(lake.manifests.all(lake.store.snapshot())) == before
    importing.done("INSERT INTO t VALUES (1)")
    assert list(lake.merges.all(lake.store.begin())) == []
