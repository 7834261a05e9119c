"""What is wrong with a dump, and on which line.

Walk: `bulk.dumps.scan` and `sql.dumps` raise these.
"""

from tenure.base.errors import UserError


class BadDump(UserError):
    """PostgreSQL's bad_copy_file_format, unless said otherwise."""

    def __init__(
        self, message: str, file: str, line: int, sqlstate: str = "22P04", *, hint: str = ""
    ) -> None:
        super().__init__(message, detail=where(file, line), hint=hint)
        self.sqlstate = sqlstate


def where(file: str, line: int) -> str:
    return f'file "{file}", line {line}'
