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

from tenure.base.errors import UndefinedTable
from tenure.base.timestamp import Timestamp, logical_of, micros_of
from tenure.catalog.descriptors.definitions import AnyDescriptor, DescriptorState
from tenure.catalog.leases.historical import HistoricalUse
from tenure.catalog.name_resolution import InStore, Path, find
from tenure.kv.keys import Span
from tenure.sql.session.services import Services


def absence(
    services: Services, past: HistoricalUse, name: Sequence[str], path: Path, position: int
) -> UndefinedTable:
    """The error for a relation that was not found as of `past`."""
    spoken, at = ".".join(name), past.snapshot.at
    found = find(InStore(services.catalog, services.store.snapshot()), name, path)
    if found is None:
        return UndefinedTable(f'relation "{spoken}" does not exist', position=position)
    then = past.descriptor(found.id)
    if then is not None and then.state is not DescriptorState.DROPPED:
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
