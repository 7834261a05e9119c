"""What runs in threads of its own until it is told to stop.

Walk: the loads (`sql_load`, `import_load`, `bulk_load`) have one for their clients.
"""

import threading
import time
from collections.abc import Callable, Iterable


class Crew:
    def __init__(self, runs: Iterable[Callable[[], None]]) -> None:
        self.stopping = threading.Event()
        """Each of them looks at this."""
        self._threads = [threading.Thread(target=run, daemon=True) for run in runs]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, within_seconds: float) -> list[int]:
        """The numbers of those that do not come to an end."""
        self.stopping.set()
        give_up = time.monotonic() + within_seconds
        for thread in self._threads:
            thread.join(max(0.1, give_up - time.monotonic()))
        return [number for number, thread in enumerate(self._threads) if thread.is_alive()]
