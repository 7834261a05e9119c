"""An archive of the classes that Spark loads, so that Java maps them instead of reading 280 jars.

    first session    starts without; then `make_in_background` starts a process of low priority, which opens
                     a session of its own, exercises it, and has Java archive the loaded classes at its exit
    later sessions   -XX:SharedArchiveFile=..., about half the time

An archive fits one Java and one set of jars: both are part of its name, so a stale one is never used. It is
written under another name and renamed when it is complete; its checksum is stored beside it. An archive that
does not match its checksum, or has none, is not used, and is made anew: Java would ignore it silently, at
each start.

Walk: `pipeline.spark` calls `Archive.of`, `is_whole`, `options`, `make_in_background`, which starts
`archive_maker`.
"""

import hashlib
import logging
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

from tenure.pipeline.java import Java

PATTERN = "spark-*.jsa"

READ_BYTES = 1 << 20

IN_BACKGROUND = 'nice -n 19 "$@" </dev/null >/dev/null 2>&1 &'
"""Started by a shell that ends at once, so that no process has to wait for it."""

_log = logging.getLogger(__name__)


class Archive(NamedTuple):
    path: Path

    @classmethod
    def of(cls, directory: Path, java: Java, spark_home: Path) -> "Archive":
        jars = sorted((spark_home / "jars").iterdir())
        facts = [str(java.program), java.version, str(java.program.stat().st_mtime_ns), str(spark_home)]
        facts += [f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
        digest = hashlib.blake2b("\n".join(facts).encode(), digest_size=12).hexdigest()
        return cls(directory / PATTERN.replace("*", digest))

    @property
    def sum_path(self) -> Path:
        return self.path.with_suffix(".sum")

    def is_whole(self) -> bool:
        """Whether it exists, and matches its checksum."""
        try:
            return self.sum_path.read_text(encoding="ascii") == summed(self.path)
        except (OSError, UnicodeDecodeError):
            return False

    def options(self) -> str:
        return f"-XX:SharedArchiveFile={self.path} -Xshare:auto"

    def publish(self, partial: Path) -> None:
        """Moves the written file to its place. The checksum comes first: one without its archive does no
        harm.
        """
        self.sum_path.write_text(summed(partial), encoding="ascii")
        os.replace(partial, self.path)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.sum_path.unlink(missing_ok=True)

    def make_in_background(self) -> None:
        command = [sys.executable, "-m", "tenure.pipeline.archive_maker", str(self.path)]
        try:
            # Mode 0700: a user who can write the archive decides what Java runs.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            subprocess.run(["sh", "-c", IN_BACKGROUND, "sh", *command], check=True, start_new_session=True)
        except (OSError, subprocess.CalledProcessError) as error:
            _log.warning("no archive of Spark's classes: %s", error)


def summed(path: Path) -> str:
    """Against damage, not against malice: a user who may write here may write the checksum too."""
    size = 0
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            size = zlib.crc32(piece, size)
        return f"{file.tell()} {size:08x}"
