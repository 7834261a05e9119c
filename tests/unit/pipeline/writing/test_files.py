"""Files of an export that is given up."""

from pathlib import Path

import pytest

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.pipeline.writing.cells import cells_of_rows
from tenure.pipeline.writing.files import OutputFiles
from tenure.pipeline.writing.formats import CSV, OutColumn, Writing
from tenure.storage.locations import Locations

WRITING = Writing(CSV, (OutColumn("a", TypeRef("int8")),), chunk_rows=2)


@pytest.mark.parametrize("is_same", [False, True])
def test_finished_files_go_as_well_unless_others_would_write_the_same(tmp_path: Path, is_same: bool) -> None:
    output = OutputFiles(
        Locations(str(tmp_path)).resolve("out"), lambda n: f"{n}.csv", WRITING, is_same=is_same
    )
    output.write(cells_of_rows([(1,), (2,), (3,)], WRITING.kinds), 3)
    output.abort()
    assert [path.name for path in (tmp_path / "out").glob("*.csv")] == (["0.csv"] if is_same else [])
