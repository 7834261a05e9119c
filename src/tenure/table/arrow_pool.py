"""Arrow's own memory: what it keeps of freed buffers is given back to the system.

Its allocator keeps freed pages per thread, for the next buffers: a node that has flushed would keep the
memory of a task for good.

Walk: `composition.table_layer` hands `release_arrow` to the tasks of bulk work, which call it when one is
over.
"""

import sys


def release_arrow() -> None:
    """Called in the thread that has freed the buffers. A process that has not loaded Arrow has none."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
