"""The layers of the architecture hold: see the contract in pyproject.toml."""

import os
import subprocess
import sys

from tests.tidy.source import ROOT, imports, product_modules

VAGUE_NAMES = {"utils", "util", "common", "helpers", "manager", "misc", "impl"}

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def test_imports_go_downward_only() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", LINT], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_imports_are_absolute() -> None:
    relative = [module.path for module in product_modules() if "\nfrom ." in module.text]
    assert relative == []


def test_only_the_pipeline_knows_spark() -> None:
    users = {
        module.path
        for module in product_modules()
        for _, name in imports(module)
        if name.split(".")[0] == "pyspark" and not module.path.startswith("pipeline/")
    }
    assert users == set()


def test_modules_are_named_by_what_they_hold() -> None:
    vague = [m.path for m in product_modules() if VAGUE_NAMES & set(m.path.removesuffix(".py").split("/"))]
    assert vague == []
