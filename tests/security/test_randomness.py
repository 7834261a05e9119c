"""S3: nonces and secrets come from the operating system, and are compared in constant time."""

import ast
import random
import re

from tenure.base.env import SystemEnv
from tests.tidy.source import product_module

SECRET_FILES = (
    "pgwire/login/scram.py",
    "pgwire/connection_slots.py",
    "catalog/accounts/passwords.py",
    "catalog/accounts/sealing.py",
    "pipeline/encryption.py",
)


def test_a_node_draws_from_the_operating_system() -> None:
    assert isinstance(SystemEnv().rng, random.SystemRandom)


def test_the_command_line_has_no_other_environment_to_give() -> None:
    cli = product_module("cli.py")
    made = {
        node.func.id
        for node in ast.walk(cli.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert "SystemEnv" in made
    assert "ManualEnv" not in made


def test_what_is_secret_is_never_drawn_from_the_environments_numbers() -> None:
    for path in SECRET_FILES:
        tree = product_module(path).tree
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "rng" not in names, path


def test_proofs_and_secrets_are_compared_in_constant_time() -> None:
    for path in ("pgwire/login/scram.py", "pgwire/connection_slots.py"):
        module = product_module(path)
        assert "compare_digest" in module.text, path
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
                words = re.sub(r"len\(\w+\)", "", ast.unparse(node))
                assert not any(word in words for word in ("proof", "stored_key", "secret", "digest")), words
