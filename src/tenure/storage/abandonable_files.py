"""pyarrow's files of an object store, for callers that do not wait for its answer for ever.

pyarrow retries an object store that hangs three times, for some four seconds each, and cannot be interrupted.
So a thread that can be told to stop (`base.interruptible`) makes each call in a thread of its own. When its
check raises, it stops waiting; the call goes on and ends after those twelve seconds. A thread that cannot be
told to stop, such as a job's, makes its calls itself.

While a statement waits here, it gives up its place among the computing threads.

Walk: `storage.bucket` hands out an `AbandonableFileSystem`, and makes its own calls by `ask`; readers of the
lake and of imports, and pyarrow, read the files.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from tenure.base.interruptible import abandonable, current_env

T = TypeVar("T")


def ask(call: Callable[[], T]) -> T:
    """Returns the object store's answer to a call; raises what the thread's check raises meanwhile."""
    env = current_env()
    if env is None:
        return call()
    with env.waiting():
        return abandonable(env, "object store", call)


class AbandonableFileSystem:
    """The methods of a pyarrow.fs.FileSystem that readers of the lake use."""

    def __init__(self, arrow: Any) -> None:
        self._arrow = arrow

    def open_input_file(self, name: str) -> Any:
        """Returns pyarrow's own file if the thread cannot be told to stop: pyarrow reads that one faster."""
        file = ask(lambda: self._arrow.open_input_file(name))
        return file if current_env() is None else AbandonableFile(file)


class AbandonableFile:
    """Reads like a pyarrow.NativeFile; pyarrow treats it as a Python file object."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._calls = 0
        """Calls that are under way, including those that were given up."""
        self.closed = False

    def read(self, size: int | None = None) -> Any:
        return self._ask(lambda: self._file.read(size))

    def read_at(self, size: int, offset: int) -> Any:
        return self._ask(lambda: self._file.read_at(size, offset))

    def read_buffer(self, size: int | None = None) -> Any:
        return self._ask(lambda: self._file.read_buffer(size))

    def _ask(self, call: Callable[[], T]) -> T:
        def counted() -> T:
            try:
                return call()
            finally:
                self._calls -= 1

        self._calls += 1
        return ask(counted)

    def size(self) -> int:
        return int(self._file.size())  # fetched when the file was opened

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        """A file that an abandoned call still reads is closed when that call ends."""
        self.closed = True
        if not self._calls:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
