"""IMPORT PGDUMP: a dump of a database becomes schemas, tables and rows, by a job.

    IMPORT PGDUMP 'location' [WITH schema_only, max_bad_rows = 100, rejects = 'location', detached]

The statement looks through the whole file first: what is not allowed is refused before anything is changed.
Then it runs the definitions in a draft, and hands what came of them to a job, with the places of the rows.
The job reads those, and publishes everything in one commit.

Walk: `statements.statement_table` -> `plan_import_dump` -> `ImportDump.control` ->
`statements.jobs.dump_contents`, `bulk.importing.job.start`.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tenure.base.errors import InvalidParameter, SyntaxFault
from tenure.bulk.importing.records import ImportPayload, TableInput
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, StatementTable, WordsPlanner
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.jobs.importing import (
    ByJob,
    ImportOptions,
    number_of,
    places,
    read_options,
    text_of,
)
from tenure.sql.statements.jobs.waiting_statements import create_job
from tenure.sql.text.tenure_statements import TokenReader

if TYPE_CHECKING:
    from tenure.bulk.importing.inputs import InputFile
    from tenure.sql.statements.jobs.dump_contents import DumpContents
    from tenure.sql.statements.jobs.dump_rules import RuledItem
    from tenure.storage.locations import Locations

OPTIONS = ("schema_only", "max_bad_rows", "rejects", "detached")


class Dump(NamedTuple):
    """A dump that was looked through."""

    source: "InputFile"
    is_compressed: bool
    steps: "list[RuledItem]"


@dataclass(frozen=True, slots=True)
class ImportDump(ByJob):
    location: str
    is_schema_only: bool
    statements: StatementTable
    defining: DefinitionServices

    def _start(self, execution: Execution) -> int:
        # Arrow is imported with these: a node that imports no dump is smaller without it.
        from tenure.bulk.importing.job import ROW_BYTES, start
        from tenure.sql.statements.jobs.dump_contents import make

        session = execution.session
        session.rights().require_superuser(
            "permission denied to IMPORT a dump", hint="It defines objects: only superusers may."
        )
        lake, locations = places(self.bulk, execution)
        if self.options.rejects:
            locations.resolve(self.options.rejects)
        dump = read(locations, self.location, execution)
        contents = make(session, self.statements, self.defining, dump.steps, dump.source.shown)
        tell_skipped(execution, contents.skipped)
        inputs = () if self.is_schema_only else tuple(self._inputs(dump, contents))
        payload = ImportPayload(
            inputs,
            self.options.bad_rows_max,
            self.options.rejects,
            session.user,
            session.database_name,
            self.bulk.env.wall_micros(),
            session.variables["TimeZone"],
            contents.descriptors,
            tuple(contents.values),
        )
        rows = sum(each.end - each.start for input in inputs for each in input.ranges) // ROW_BYTES
        text = f"IMPORT PGDUMP '{dump.source.location.shown}'"
        return create_job(execution, lambda txn: start(txn, lake, payload, rows=rows, description=text))

    def _inputs(self, dump: Dump, contents: "DumpContents") -> list[TableInput]:
        return [
            TableInput(
                rows.table,
                rows.columns,
                (self.location,),
                rows.format,
                ranges=tuple(ranges),
                generated=rows.generated,
                bytes=dump.source.bytes,
                is_compressed=dump.is_compressed,
            )
            for rows, ranges in contents.rows.items()
        ]


def read(locations: "Locations", location: str, execution: Execution) -> Dump:
    """Looks through a dump. Raises BadDump for the first thing in it that is wrong, or not allowed."""
    from tenure.bulk.dumps.scan import items
    from tenure.bulk.importing.inputs import sources_of
    from tenure.sql.statements.jobs.dump_rules import judge
    from tenure.storage.decompression import HEAD_BYTES, codec_of

    sources = sources_of(locations, TableInput(0, (), (location,), ""))
    if len(sources) > 1:
        raise InvalidParameter("IMPORT PGDUMP takes one file", hint="Import several dumps one by one.")
    source = sources[0]
    with source.location.open_input(source.name) as file:
        is_compressed = bool(codec_of(file.read(HEAD_BYTES), source.shown))
    steps = []
    with source.location.open_decompressed(source.name) as stream:
        for item in items(stream, source.shown):
            execution.check()
            step = judge(item, source.shown)
            if step is not None:
                steps.append(step)
    return Dump(source, is_compressed, steps)


def tell_skipped(execution: Execution, skipped: "Counter[str]") -> None:
    if skipped:
        listed = ", ".join(f"{words} ({count})" for words, count in sorted(skipped.items()))
        execution.session.notice(
            f"{skipped.total()} statements of the dump were not taken over", detail=f"{listed}."
        )


# Reading it


def plan_import_dump(
    bulk: BulkServices, defining: DefinitionServices, planner: Planner, reader: TokenReader
) -> ImportDump:
    location = text_of(reader)
    option_texts = read_options(reader)
    reader.end()
    unknown = set(option_texts) - {*OPTIONS}
    if unknown:
        raise SyntaxFault(f'option "{min(unknown)}" not recognized')
    options = ImportOptions(
        bad_rows_max=number_of(option_texts, "max_bad_rows"),
        rejects=option_texts.get("rejects") or "",
        is_detached="detached" in option_texts,
    )
    return ImportDump(bulk, options, location, "schema_only" in option_texts, planner.statements, defining)


def statements(bulk: BulkServices, defining: DefinitionServices) -> dict[tuple[str, ...], WordsPlanner]:
    return {("import", "pgdump"): partial(plan_import_dump, bulk, defining)}
