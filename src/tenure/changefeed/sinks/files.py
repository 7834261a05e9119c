"""Files: messages as NDJSON, Parquet or Avro, and a manifest per batch that makes its files count.

    42/000000000007-r3-1-users.ndjson      changes of one table: batch 7 of job 42, by its run 3
    42/000000000007.json                   the manifest of batch 7: its files, resolved timestamp and position

A file that no manifest names does not exist for readers. They read the manifests in order of their numbers,
so they see whole batches, and each once; after the manifest with resolved R they have every change up to R.

A file is created only if its name is free. So of two runs that believe to have the job, one writes the next
manifest, and the other fails. The manifest has the position of the feed: a run that finds manifests beyond
the job's own record goes on from the last of them, and repeats nothing.

Simplification: an object store cannot refuse a name that is taken, so there it is looked up just before.

Invariant (batch-once): a change is in the files of exactly one manifest.

Walk: `changefeed.sinks.destinations` makes one per run; `changefeed.feed` calls `emit`.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.errors import FileExists, FileMissing, RetryError
from tenure.base.timestamp import to_text
from tenure.changefeed.messages import Message
from tenure.changefeed.records import FeedPosition
from tenure.changefeed.sinks.file_bodies import FileBody, body_for
from tenure.changefeed.sinks.sink import SinkRun
from tenure.kv.records import pack, replace, unpack
from tenure.storage.location_text import file_stem
from tenure.storage.locations import Location

FILE_BYTES = 16 << 20
"""A file of so many bytes is written before its batch is complete: memory holds no more per table."""

MANIFEST_BYTES_MAX = 64 << 20
"""More than any manifest has: a batch of a million files."""


class BatchFile(NamedTuple):
    name: str
    table: str
    rows: int
    bytes: int


class FileSink:
    def __init__(self, location: Location, run: SinkRun) -> None:
        self._location = location
        self._directory = str(run.job)
        self._run = run.run
        self._options = run.options
        self._batch = 0
        self._bodies: dict[str, FileBody] = {}
        self._files: list[BatchFile] = []
        self._is_tidy = False

    def resume(self, position: FeedPosition) -> FeedPosition:
        while (later := self._committed(position.batch + 1)) is not None:
            position = later
        self._batch = position.batch
        return position

    def emit(self, messages: Sequence[Message]) -> int:
        size = 0
        for message in messages:
            body = self._bodies.get(message.topic)
            if body is not None and not body.takes(message):
                self._write(message.topic)  # the files of a table are in the order of its changes
                body = None
            if body is None:
                body = self._bodies[message.topic] = body_for(message, self._options)
            size += body.add(message)
            if body.size >= FILE_BYTES:
                self._write(message.topic)
        return size

    def commit(self, position: FeedPosition) -> FeedPosition:
        for topic in [*self._bodies]:
            self._write(topic)
        position = replace(position, batch=self._batch + 1)
        name = self._manifest_name(position.batch)
        # Not deleted from here on, even if this fails: the manifest may be there all the same.
        files, self._files = self._files, []
        try:
            self._put(name, _manifest(position, files))
        except FileExists as error:
            raise RetryError(f'another run has committed "{name}" of this changefeed') from error
        self._batch = position.batch
        if not self._is_tidy:
            self._delete_leftovers()
            self._is_tidy = True
        return position

    def close(self) -> None:
        """The files without a manifest are deleted; those of a process that has died, by the next run."""
        self._bodies = {}
        files, self._files = self._files, []
        self._location.delete([each.name for each in files])

    def _write(self, topic: str) -> None:
        body = self._bodies.pop(topic)
        number = len(self._files) + 1
        name = f"{self._stem(self._batch + 1)}-r{self._run}-{number}-{file_stem(topic)}.{body.ending}"
        content = body.content()
        self._put(name, content)
        self._files.append(BatchFile(name, topic, body.rows, len(content)))

    def _put(self, name: str, data: bytes) -> None:
        with self._location.create(name) as output:
            output.write(data)

    def _stem(self, batch: int) -> str:
        return f"{self._directory}/{batch:012d}"

    def _manifest_name(self, batch: int) -> str:
        return f"{self._stem(batch)}.json"

    def _committed(self, batch: int) -> FeedPosition | None:
        try:
            with self._location.open_input(self._manifest_name(batch)) as source:
                found = json.loads(source.read(MANIFEST_BYTES_MAX))
        except FileMissing:
            return None
        return unpack(b64decode(found["position"]), FeedPosition)

    def _delete_leftovers(self) -> None:
        """The files that other runs have left of the batch that this one has just committed: theirs cannot be
        committed any more.
        """
        stem = self._stem(self._batch)
        own = f"{stem}-r{self._run}-"
        names = [entry.name for page in self._location.list() for entry in page]
        self._location.delete(
            [each for each in names if each.startswith(f"{stem}-r") and not each.startswith(own)]
        )


def _manifest(position: FeedPosition, files: Sequence[BatchFile]) -> bytes:
    manifest = {
        "batch": position.batch,
        "resolved": to_text(position.resolved_at) if position.resolved_at else None,
        "files": [each._asdict() for each in files],
        "position": b64encode(pack(position)).decode(),
    }
    return json.dumps(manifest, indent=1).encode() + b"\n"
