"""Texts that repeat themselves are written as each would be by itself."""

from datetime import UTC

import pyarrow as pa
import pytest

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.type_names import type_of
from tenure.pipeline.writing.cells import Cells
from tenure.pipeline.writing.csv_rows import SAMPLE_DISTINCT_MAX, SAMPLE_ROWS, csv_bytes
from tenure.pipeline.writing.formats import CsvOut

TEXT = type_of(TypeRef("text"))
WORDS = (None, "", "a,b", 'x"y', "plain", "\\.", "NULL", "two\nlines")


@pytest.mark.parametrize("null", ["", "NULL"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("late", [(), tuple(f"late, {number}" for number in range(SAMPLE_DISTINCT_MAX + 1))])
def test_each_is_written_as_it_would_be_alone(null: str, columns: int, late: tuple[str, ...]) -> None:
    texts = [*(WORDS[number % len(WORDS)] for number in range(2 * SAMPLE_ROWS)), *late]
    csv = CsvOut(null=null)

    def written(some: list[str | None]) -> bytes:
        cells = [Cells(TEXT, pa.array(some, pa.string()))] * columns
        return bytes(csv_bytes(cells, len(some), csv, UTC))

    assert written(texts) == b"".join(written([text]) for text in texts)
