"""A tree of files in a bucket of an object store that speaks S3, through pyarrow.

A file is written to a temporary file of this machine first and sent when it is closed. pyarrow's
own streams cannot be given up: dropped half-way, they complete the upload, and a file would be
seen that never was whole. The store shows an object when its last part has arrived; uploads that
a crash cut off cost space until the bucket's lifecycle rule for incomplete uploads removes them.

S3 can refuse to replace an object, but pyarrow cannot ask it to: a name is looked up before its file is sent.
Two writers never use one name in the same moment: the lake's names are unique to an attempt, an export's to
its job.

Errors tell S3's code and never its text; keys and secrets are in no message and no `repr`.

A statement that is canceled, or whose time is up, does not wait for the store's answer
(`storage.abandonable_files`). Files are written by jobs, which do wait: if a job stopped waiting for an
upload, the file could appear after the job was rolled back.

Walk: `files.open_files` and `locations.Locations.resolve` make one.
"""

import errno
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import urlsplit

from tenure.base.errors import FileMissing, InputOutput, InvalidParameter, NoPermission, StoreError
from tenure.storage.abandonable_files import AbandonableFileSystem, ask
from tenure.storage.location_text import LocationText
from tenure.storage.tree import DuckConnection, InputStream, OutputStream, TreeEntry, failure, join

SPOOL_MEMORY_BYTES = 8 * 1024 * 1024
"""Smaller files never touch the local disk; one writer may use as much memory."""

COPY_BYTES = 4 * 1024 * 1024
CONNECT_SECONDS = 5.0
DEFAULT_REGION = "us-east-1"
DUCK_SCHEME = "tenurelake"

DENIED = re.compile(r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE|TOKEN|CREDENTIAL|HTTP status 40[13]")
REGION = re.compile(r"[a-z0-9-]{1,40}")
ENDPOINT = re.compile(r"https?://([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:]{2,45}\])(:[0-9]{1,5})?")

INSIDE = re.compile(r"(?!\.)[A-Za-z0-9_.-]+(/(?!\.)[A-Za-z0-9_.-]+)*")
"""Paths no component of which begins with a dot."""

MISSING = re.compile(r"NO_SUCH_BUCKET|NO_SUCH_KEY|HTTP status 404")


@dataclass(frozen=True, repr=False)
class Credentials:
    """Travels in tasks and options, and is never displayed."""

    access_key: str
    secret_key: str
    session_token: str = ""


@dataclass(frozen=True)
class BucketAddress:
    bucket: str
    prefix: str = ""
    region: str = ""
    """If empty, the environment's region, or S3's default one."""
    endpoint: str = ""
    """`https://host:port` of a store other than Amazon's."""


def bucket_address(text: LocationText) -> BucketAddress:
    """Region and endpoint become part of a host name, so they are checked like one."""
    region = text.options.get("AWS_REGION", "")
    endpoint = text.options.get("AWS_ENDPOINT", "")
    if region and not REGION.fullmatch(region):
        raise InvalidParameter(f'AWS_REGION of location "{text.shown}" is not the name of a region')
    if endpoint and not ENDPOINT.fullmatch(endpoint):
        raise InvalidParameter(
            f'AWS_ENDPOINT of location "{text.shown}" is not an endpoint', hint="Write https://host:port."
        )
    return BucketAddress(text.bucket, region=region, endpoint=endpoint)


def credentials_of(text: LocationText) -> Credentials | None:
    key, secret = text.options.get("AWS_ACCESS_KEY_ID"), text.options.get("AWS_SECRET_ACCESS_KEY")
    token = text.options.get("AWS_SESSION_TOKEN", "")
    if bool(key) != bool(secret) or (token and not key):
        raise InvalidParameter(
            f'location "{text.shown}" needs both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
        )
    return Credentials(key, secret, token) if key and secret else None


class Bucket:
    def __init__(self, address: BucketAddress, credentials: Credentials | None = None) -> None:
        """Without credentials, the environment's are used."""
        self.address = address
        self.credentials = credentials

    @cached_property
    def arrow(self) -> Any:
        return AbandonableFileSystem(self._arrow)

    @cached_property
    def _arrow(self) -> Any:
        from pyarrow import fs

        return fs.SubTreeFileSystem(join(self.address.bucket, self.address.prefix), self._connect())

    @property
    def duck_root(self) -> str:
        return f"{DUCK_SCHEME}://"

    def duck_path(self, name: str) -> str:
        return f"{DUCK_SCHEME}://{name}"

    def let_duckdb_read(self, connection: DuckConnection) -> None:
        connection.register_filesystem(_duck_file_system(self._arrow))

    def translated(self, doing: str, shown: str) -> AbstractContextManager[None]:
        return translated(doing, shown)

    def open_input(self, name: str) -> IO[bytes]:
        with translated("open file", name):
            raw = self.arrow.open_input_file(name)
        return io.BufferedReader(InputStream(raw, lambda: translated("read file", name)), COPY_BYTES)

    def create(self, name: str, *, is_lasting: bool = True) -> OutputStream:
        self.refuse_taken(name)
        return _BucketOutput(self, name)

    def open_output_stream(self, name: str) -> Any:
        # By default pyarrow compresses files called .gz, although their content is compressed already.
        return self._arrow.open_output_stream(name, compression=None)

    def refuse_taken(self, name: str) -> None:
        if self.entry(name) is not None:
            raise failure("create file", name, FileExistsError(errno.EEXIST, ""))

    def entry(self, name: str) -> TreeEntry | None:
        with translated("look at file", name):
            return _entry(ask(lambda: self._arrow.get_file_info(name)))

    def children(self, directory: str) -> Iterator[TreeEntry]:
        from pyarrow import fs

        with translated("list", directory):
            selector = fs.FileSelector(directory, allow_not_found=True)
            found = ask(lambda: self._arrow.get_file_info(selector))
        yield from sorted(entry for each in found if (entry := _entry(each)) is not None)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                with translated("delete file", name):
                    self._arrow.delete_file(name)
            except FileMissing:
                pass

    def delete_unfinished(self, *, before_micros: int) -> int:
        """Does nothing: the bucket's lifecycle rule removes incomplete uploads."""
        return 0

    def _connect(self) -> Any:
        from pyarrow import fs

        at = self.address
        environment = os.environ
        options: dict[str, Any] = {
            "region": at.region
            or environment.get("AWS_REGION")
            or environment.get("AWS_DEFAULT_REGION")
            or DEFAULT_REGION,
            "connect_timeout": CONNECT_SECONDS,
        }
        if self.credentials is not None:
            options["access_key"] = self.credentials.access_key
            options["secret_key"] = self.credentials.secret_key
            options["session_token"] = self.credentials.session_token or None
        if at.endpoint:
            parts = urlsplit(at.endpoint)
            options.update(scheme=parts.scheme, endpoint_override=parts.netloc)
        with translated("open bucket", at.bucket):
            return fs.S3FileSystem(**options)


class _BucketOutput(OutputStream):
    def __init__(self, bucket: Bucket, name: str) -> None:
        self._bucket = bucket
        self._name = name
        self._spool = SpooledTemporaryFile(SPOOL_MEMORY_BYTES)  # noqa: SIM115 closed by discard
        self._bytes = 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        with translated("write file", self._name):
            self._spool.write(view)
        self._bytes += len(view)
        return len(view)

    def tell(self) -> int:
        return self._bytes

    def publish(self) -> None:
        self._bucket.refuse_taken(self._name)
        with translated("write file", self._name):
            self._spool.seek(0)
            self._send()
        sent = self._bucket.entry(self._name)
        if sent is None or sent.bytes != self._bytes:
            self._bucket.delete([self._name])
            raise InputOutput(f'could not write file "{self._name}": the store has not kept all of it')
        self.discard()

    def _send(self) -> None:
        stream = self._bucket.open_output_stream(self._name)
        try:
            shutil.copyfileobj(self._spool, stream, COPY_BYTES)
            stream.close()
        except BaseException:
            # The stream completes the upload when it is dropped; the object is then deleted.
            with suppress(OSError, StoreError):
                stream.close()
                self._bucket.delete([self._name])
            raise

    def discard(self) -> None:
        self._spool.close()


def _entry(info: Any) -> TreeEntry | None:
    from pyarrow import fs

    if info.type == fs.FileType.NotFound:
        return None
    is_directory = info.type == fs.FileType.Directory
    return TreeEntry(info.path, info.size or 0, (info.mtime_ns or 0) // 1000, is_directory)


@contextmanager
def translated(doing: str, shown: str) -> Iterator[None]:
    """pyarrow's errors are OSErrors, mostly without a number, or ValueErrors."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _failure(doing, shown, error) from error


def _failure(doing: str, shown: str, error: Exception) -> StoreError:
    if isinstance(error, FileNotFoundError) or (isinstance(error, OSError) and error.errno):
        return failure(doing, shown, error)
    text = str(error)
    code = re.search(r"AWS Error (\w+)", text)
    kind = NoPermission if DENIED.search(text) else FileMissing if MISSING.search(text) else InputOutput
    reason = code[1] if code else type(error).__name__
    return kind(f'could not {doing} "{shown}": the object store answers {reason}')


def _duck_file_system(arrow: Any) -> Any:
    """The file system that DuckDB reads through; DuckDB's own S3 extension would have to be downloaded.

    DuckDB restricts reads to the scheme alone, and the store resolves "..". So paths are checked here, and
    only reading is implemented.
    """
    from fsspec.implementations.arrow import ArrowFSWrapper

    class LakeFileSystem(ArrowFSWrapper):  # type: ignore[misc]
        protocol = DUCK_SCHEME

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            name = path.removeprefix(f"{DUCK_SCHEME}://")
            if not INSIDE.fullmatch(name):
                raise PermissionError(errno.EACCES, "not a file of the lake", name)
            return name

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            if mode != "rb":
                raise PermissionError(errno.EACCES, "the lake is only read", path)
            return super()._open(path, mode, **options)

        def _refuse(self, *_paths: Any, **_options: Any) -> Any:
            raise PermissionError(errno.EACCES, "the lake is only read")

        mkdir = makedirs = rmdir = rm = rm_file = mv = cp_file = _refuse

    return LakeFileSystem(arrow, skip_instance_cache=True)
