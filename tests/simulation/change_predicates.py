"""What must have become of changes and rows: the index oracle, the model of rows, all or nothing.

    model      the effects of the transactions that landed, in the order of their commits
    oracle     every index of every table, against a naive scan of its rows, at many times

Walk: `schema_predicates.check` calls these over a `SchemaIndex`.
"""

from collections.abc import Iterator
from uuid import UUID

from tenure.base.errors import WrongState
from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    ElementState,
    Table,
    elements,
    replace,
    visible,
)
from tenure.catalog.descriptors.elements import has_additions, is_finished
from tenure.cluster.jobs.job_states import TERMINAL, JobState
from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Datum
from tenure.kv.snapshot import Snapshot
from tenure.schema_change.job import KIND
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.table import read
from tenure.table.consistency import check_indexes
from tenure.table.rows import Layout, Layouts, Row
from tests.simulation import emptying
from tests.simulation.predicates import Violation
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import Effect
from tests.simulation.trace import Txn

CONTEXT = Context(0, 0, lambda: UUID(int=0), lambda: 0)
MOMENTS_MAX = 12
"""Times at which a table is looked at, beside those at which its versions came."""


Model = dict[int, dict[int, dict[int, object]]]
"""Table, key, column: what was given."""


def oracle(index: SchemaIndex, engine: SqliteEngine) -> Iterator[Violation]:
    """Rows and indexes of every table are right: as versions come, and at moments in between."""
    moments = _moments(index)
    effects = sorted(
        (record.txn.landed_at, record.effects)
        for record in index.trace.uses.values()
        if record.txn.landed_at is not None and record.effects
    )
    layouts, model, position = Layouts(index.keyspace), Model(), 0
    for at in moments:
        while position < len(effects) and effects[position][0] <= at:
            for effect in effects[position][1]:
                _apply(model, effect)
            position += 1
        snapshot = Snapshot(engine, index.keyspace, at)
        for id in index.versions:
            table = index.version_at(id, at)
            if isinstance(table, Table) and table.state is DescriptorState.PUBLIC:
                left = emptying.left_behind(each for since, each, _ in index.versions[id] if since <= at)
                for message in _problems(snapshot, layouts, table, model.get(id, {}), left):
                    text = f"table {id} v{table.version} at {to_text(at)}: {message}"
                    yield Violation("index" if "index" in message else "rows", text, index.trace.step)


def _moments(index: SchemaIndex) -> list[Timestamp]:
    came = {at for versions in index.versions.values() for at, each, _ in versions if isinstance(each, Table)}
    landed = [record.txn.landed_at for record in index.trace.uses.values() if record.effects]
    written = sorted(at for at in landed if at is not None)
    few = written[:: max(1, len(written) // MOMENTS_MAX)]
    last = [index.trace.landings[-1].at] if index.trace.landings else []
    return sorted({*came, *(at - 1 for at in came), *few, *last})


def _apply(model: Model, effect: Effect) -> None:
    rows = model.setdefault(effect.table, {})
    if effect.is_of_all:
        rows.clear()
    elif effect.values is None:
        rows.pop(effect.key, None)
    elif effect.is_insert:
        rows[effect.key] = dict(effect.values)
    else:
        rows.setdefault(effect.key, {}).update(effect.values)


def _problems(
    snapshot: Snapshot,
    layouts: Layouts,
    table: Table,
    model: dict[int, dict[int, object]],
    left: set[int],
) -> Iterator[str]:
    layout = layouts.of(table)
    yield from check_indexes(snapshot, layout, CONTEXT, left=left)
    for row in read.rows(snapshot, layout):
        yield from _broken(layout, row)
    columns = [(column.id, _given(layout.columns[column.id].filled)) for column in visible(table.columns)]
    expected = {
        key: {id: values.get(id, otherwise) for id, otherwise in columns if id != 1}
        for key, values in model.items()
    }
    found = {
        row.values[1]: {id: row.values[id] for id, _ in columns if id != 1}
        for row in read.rows(snapshot, layout)
    }
    if found != expected:
        keys = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
        pairs = [(key, found.get(key), expected.get(key)) for key in keys[:2]]
        yield f"rows differ (key, found, expected): {pairs}"


def _broken(layout: Layout, row: Row) -> Iterator[str]:
    """Constraints that are relied upon, and do not hold."""
    for kept in layout.columns.values():
        if kept.is_public and not kept.column.is_nullable and row.values[kept.id] is None:
            yield f'a null in column "{kept.name}"'
    for check in layout.checks:
        if check.check.state is ElementState.PUBLIC and check.is_broken_by(row.values, CONTEXT):
            yield f'a row that breaks "{check.name}"'


def _given(filled: Datum) -> Datum:
    """A column's default is what it was filled with, in this world."""
    return filled


# ── changes ──────────────────────────────────────────────────────────────────────────────────────


def atomicity(index: SchemaIndex) -> Iterator[Violation]:
    """What an attempt declared is public if it said so, and never if it failed or did not commit."""
    shown: set[tuple[int, str]] = set()
    for id, versions in index.versions.items():
        for _, descriptor, _ in versions:
            if isinstance(descriptor, Table):
                shown |= {
                    (id, each.name) for each in elements(descriptor) if each.state is ElementState.PUBLIC
                }
    dropped = {
        id for id, versions in index.versions.items() if versions[-1][1].state is DescriptorState.DROPPED
    }
    for declared in index.trace.declared:
        txn = declared.use.txn
        for element in declared.elements:
            is_shown = element in shown
            who = f"t{txn.id} ({declared.kind}, {declared.outcome or 'not ended'})"
            if declared.outcome == "done" and not is_shown and element[0] not in dropped:
                yield Violation("ddl", f"{who}: {element} never became public", declared.ended, (txn.id,))
            if is_shown and (not txn.landed or declared.outcome == "failed"):
                yield Violation("ddl", f"{who}: {element} is public", declared.ended or txn.begun, (txn.id,))
        if declared.outcome == "done" and txn.children and txn.landed:
            index.trace.seen["children path"] += 1


def reverts(index: SchemaIndex) -> Iterator[Violation]:
    """A change that was taken back leaves the table as it was, but for version and counters."""
    ends = {job: controls[-1][1].state for job, controls in index.controls.items()}
    for id, versions in index.versions.items():
        before: AnyDescriptor | None = None
        job = is_taken_back = 0
        for _, descriptor, txn in versions:
            if not isinstance(descriptor, Table):
                break
            if descriptor.job and descriptor.job != job:
                job, is_taken_back = descriptor.job, has_additions(descriptor)
            elif job and not descriptor.job:
                is_failed = ends.get(job) in (JobState.FAILED, JobState.CANCELED)
                if is_failed and is_taken_back and isinstance(before, Table):
                    index.trace.seen["a change reverted"] += 1
                    if _bare(before) != _bare(descriptor):
                        message = f"table {id} is not what it was before job {job}"
                        yield Violation("ddl", message, txn.landed, (txn.id,))
                job = 0
            if not descriptor.job:
                before = descriptor


def _bare(table: Table) -> Table:
    table = replace(table, version=1, modified_at=0, logical=0, row=0, job=0, is_locked=False, watchers=())
    return replace(table, next_column=0, next_index=0, next_constraint=0)


def _is_forward(index: SchemaIndex, job: int, txn: Txn) -> bool:
    """Whether a version was written while its job was not yet on its way back."""
    states = [control.state for version, control in index.controls[job] if version.step <= txn.landed]
    return states[-1] is not JobState.REVERTING


def ends(index: SchemaIndex) -> Iterator[Violation]:
    """I19: once the faults are over, every change comes to its end, and nothing is left half-way."""
    for job, controls in index.controls.items():
        version, control = controls[-1]
        if control.kind == KIND and control.state not in TERMINAL:
            message = f"change {job} is still {control.state.value} ({control.error_text})"
            yield Violation("I19", message, version.step, (version.writer.id,))
        # One that was canceled too late is public, and says so.
        if control.state is JobState.REVERT_FAILED and not control.error_text.startswith(WrongState.sqlstate):
            message = f"change {job} could not be taken back: {control.error_text}"
            yield Violation("I19", message, version.step, (version.writer.id,))
    for id, versions in index.versions.items():
        _, descriptor, txn = versions[-1]
        if not is_finished(descriptor) or (isinstance(descriptor, Table) and descriptor.job):
            message = f'"{descriptor.name}" ({id}) v{descriptor.version} is left half-way'
            yield Violation("I19", message, txn.landed, (txn.id,))


def adoptions(index: SchemaIndex) -> Iterator[Violation]:
    """Counts changes that went on under another session."""
    for controls in index.controls.values():
        claims = [control.claim for _, control in controls if control.claim.instance]
        if len({*claims}) > 1:
            index.trace.seen["a change adopted by another node"] += 1
    yield from ()
