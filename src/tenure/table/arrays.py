"""Names for the Arrow and numpy arrays and tables that functions take and return.

pyarrow comes without types that mypy could check; the names are for readers.

Walk: modules of `table`, `pipeline` and `bulk` annotate their functions with these.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows: TypeAlias = pa.Table
"""Rows as columns: `key`, `at` and others, by the names of `lake.format`."""

Keys: TypeAlias = pa.Array
"""Keys as a binary array, or of fixed size if all have one length."""

Column: TypeAlias = pa.Array
"""One column; in a table it may be a `pa.ChunkedArray`."""

Int64s: TypeAlias = npt.NDArray[np.int64]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
Int32s: TypeAlias = npt.NDArray[np.int32]
Numbers: TypeAlias = npt.NDArray[Any]
"""An array of any numeric type."""

KeyArray: TypeAlias = npt.NDArray[Any]
"""Keys that numpy can search: of fixed width, or Python's bytes where some are long."""

HeldKeys: TypeAlias = Any
"""Keys of a row group: a `KeyArray`, or `Keys` where some are long."""

Buffer: TypeAlias = pa.Buffer
"""Bytes of a file, or `bytes`."""
