"""Which Java will do, by what it says of itself."""

from pathlib import Path

import pytest

from tenure.base.errors import NoJava
from tenure.pipeline.java import find_java

MODULES = "java.base jdk.incubator.vector jdk.zipfs"


def a_java(directory: Path, *, release: str = "", says: str = "") -> dict[str, str]:
    """An environment whose JAVA_HOME has a program that says this of its modules."""
    program = directory / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat <<end\n{says}\nend\n")
    program.chmod(0o755)
    if release:
        (directory / "release").write_text(release)
    return {"JAVA_HOME": str(directory)}


def test_a_java_is_known_by_its_release_file(tmp_path: Path) -> None:
    environ = a_java(tmp_path, release=f'JAVA_VERSION="21.0.2"\nMODULES="{MODULES}"\n')
    java = find_java(environ)
    assert (java.program, java.version) == (tmp_path / "bin" / "java", "21.0.2")


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    environ = a_java(tmp_path, says="java.base@17.0.15\njdk.incubator.vector@17.0.15")
    assert find_java(environ).version == "17.0.15"


def test_the_first_java_on_the_path_is_taken_without_a_home(tmp_path: Path) -> None:
    a_java(tmp_path, release=f'JAVA_VERSION="17"\nMODULES="{MODULES}"\n')
    assert find_java({"PATH": str(tmp_path / "bin")}).version == "17"


@pytest.mark.parametrize(
    ("release", "says", "why"),
    [
        (f'JAVA_VERSION="11.0.2"\nMODULES="{MODULES}"\n', "", "newer; .* is 11.0.2"),
        ('JAVA_VERSION="17.0.1"\nMODULES="java.base"\n', "", "lacks it"),
        ("", "Unrecognized option: --list-modules", "8 or older"),
    ],
)
def test_a_java_that_will_not_do_is_refused_with_what_to_install(
    tmp_path: Path, release: str, says: str, why: str
) -> None:
    with pytest.raises(NoJava, match=why) as refused:
        find_java(a_java(tmp_path, release=release, says=says))
    assert "openjdk-17-jre-headless" in refused.value.hint


def test_no_java_at_all_is_refused_with_what_to_install(tmp_path: Path) -> None:
    for environ in ({"PATH": str(tmp_path)}, {"JAVA_HOME": str(tmp_path)}):
        with pytest.raises(NoJava) as refused:
            find_java(environ)
        assert "openjdk-17-jre-headless" in refused.value.hint
