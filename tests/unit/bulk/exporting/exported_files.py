"""The files that EXPORT wrote."""

from pathlib import Path

from tests.unit.sql.sessions import Said

ROWS = 40
"""Of the table `t`."""


def files(directory: Path, place: str) -> dict[str, bytes]:
    found = sorted((directory / "files" / place).glob("**/*"))
    return {path.name: path.read_bytes() for path in found if path.is_file()}


def exported(directory: Path, said: Said, place: str) -> bytes:
    """The files that a statement told of, one after the other; there are no others."""
    assert not said.sqlstate, said
    assert said.columns == ("filename", "rows", "bytes")
    found = files(directory, place)
    assert sorted(found) == sorted(str(name) for name, _, _ in said.rows)
    assert {str(name): int(size or 0) for name, _, size in said.rows} == {
        name: len(data) for name, data in found.items()
    }
    return b"".join(found[str(name)] for name, _, _ in said.rows)
