"""Which words need quotes."""

from tenure.expr.types.quoting import RESERVED
from tests.unit.expr.oracle import Oracle


def test_the_words_that_need_quotes_are_those_of_postgres(oracle: Oracle) -> None:
    rows = oracle.rows("SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'")
    assert {str(word) for (word,) in rows} == RESERVED
