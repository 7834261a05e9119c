"""Verifying a base: every file that a manifest names exists, and matches its entry.

Reads each file whole. Faults are reported in words, file by file; nothing is repaired.

Readers check what they read by themselves (`lake.checked_files`); this checks all of a base at once.

Walk: the tests that kill processes and damage files call `verify` with each manifest.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tenure.base.errors import FileMissing, TenureError
from tenure.storage.files import Files
from tenure.table.lake.format import KEY, has_checksum
from tenure.table.lake.manifests import File, Manifest


def verify(files: Files, manifest: Manifest) -> Iterator[str]:
    """The faults of an index's base, if any."""
    for file in manifest.live:
        yield from (f'live file "{file.name}" {wrong}' for wrong in _wrong(files, file, is_live=True))
    for file in manifest.past:
        yield from (f'past file "{file.name}" {wrong}' for wrong in _wrong(files, file, is_live=False))


def _wrong(files: Files, file: File, *, is_live: bool) -> Iterator[str]:
    try:
        data = files.read(file.name, bytes_max=file.size)
    except FileMissing:
        yield "is not there"
        return
    except TenureError as error:
        yield f"cannot be read: {error}"
        return
    if len(data) != file.size or not has_checksum(data, file.checksum):
        yield f"is not what was written: {len(data)} bytes where there were {file.size}, or others"
        return
    keys = pq.read_table(pa.BufferReader(data), columns=[KEY]).column(KEY).combine_chunks()
    if len(keys) != file.rows:
        yield f"has {len(keys)} rows, not {file.rows}"
    elif (keys[0].as_py(), keys[-1].as_py()) != (file.first, file.last):
        yield "has other bounds than the manifest says"
    order = pc.less if is_live else pc.less_equal  # a past file has several revisions of one key
    if not pc.all(order(keys[:-1], keys[1:]), min_count=0).as_py():
        yield "is not sorted, or has a key twice"
