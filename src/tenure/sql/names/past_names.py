"""Names that did not exist at an earlier time, but exist now: the error says why.

    at ─────────────┬──────────────► now        the relation was made here: it did not exist at `at`
                    └ CREATE TABLE
    at ──────┬─────────────────────► now        it was there at `at`, under another name
             └ RENAME

Walk: `sql.names.session_names` asks `absence` before it says that a relation does not exist in a block that
reads the past.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from tenure.base.errors import NotSupported, UndefinedTable
from tenure.base.timestamp import Timestamp, logical_of, micros_of
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry, is_dropped
from tenure.catalog.descriptors.temporary_objects import TemporaryObjects
from tenure.catalog.leases.historical import HistoricalUse
from tenure.catalog.name_resolution import InStore, Path, find
from tenure.kv.keys import Span
from tenure.sql.session.services import Services


def refuse_temporary(
    past: HistoricalUse, temporary: TemporaryObjects | None, name: Sequence[str], path: Path
) -> None:
    """Refuses a name of a temporary object, also if a permanent one had it: only that has a past."""
    if temporary is None:
        return
    found = find(_Beside(past, temporary), name, path)
    if found is not None and found.id in temporary.by_id:
        raise NotSupported(
            f'AS OF SYSTEM TIME is not supported for temporary table "{name[-1]}"',
            hint="Temporary tables have no history.",
        )


class _Beside:
    """The catalog of then, with the temporary objects of now."""

    def __init__(self, past: HistoricalUse, temporary: TemporaryObjects) -> None:
        self._past = past
        self._temporary = temporary

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self._temporary.by_id.get(id) or self._past.descriptor(id)

    def id_at(self, place: NameKey) -> int | None:
        return self._temporary.names.get(place) or self._past.id_at(place)

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        return self._past.schema_entry(database, name)


def absence(
    services: Services, past: HistoricalUse, name: Sequence[str], path: Path, position: int
) -> UndefinedTable:
    """The error for a relation that was not found as of `past`."""
    spoken, at = ".".join(name), past.snapshot.at
    found = find(InStore(services.catalog, services.store.snapshot()), name, path)
    if found is None:
        return UndefinedTable(f'relation "{spoken}" does not exist', position=position)
    then = past.descriptor(found.id)
    if then is not None and not is_dropped(then):
        detail = f'What has this name now was there under another: "{then.name}".'
        hint = "Use the names of that time, or read at a later time."
    else:
        detail = f"It exists since {_shown(_created_at(services, found, at))}."
        hint = "Read at a later time."
    return UndefinedTable(
        f'relation "{spoken}" did not exist at {_shown(at)}', detail=detail, hint=hint, position=position
    )


def _created_at(services: Services, descriptor: AnyDescriptor, after_at: Timestamp) -> Timestamp:
    """When the first version was written that came after a time at which there was none."""
    key = services.catalog.key(descriptor.id)
    found = services.store.history(Span(key, key + b"\0"), since_at=after_at, limit=1)
    return found.revisions[0].at if found.revisions else descriptor.modified_at


def _shown(at: Timestamp) -> str:
    """The time for AS OF SYSTEM TIME, rounded up, so that an object that exists at `at` exists at that
    time."""
    micros = micros_of(at) + (logical_of(at) > 0)
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat(sep=" ", timespec="microseconds")
