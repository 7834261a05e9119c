"""How Spark is told to keep what it carries to itself, by its master."""

import pytest

from tenure.pipeline.encryption import is_readable, secret_settings, settings

OURS = ("local", "local[*]", "local[2,4]", "local-cluster[2,1,1024]")
OTHERS = ("spark://127.0.0.1:7077", "spark://10.0.0.1:7077", "yarn", "k8s://https://10.0.0.1:6443")


@pytest.mark.parametrize("master", [*OURS, *OTHERS])
def test_nothing_is_shown_and_files_are_encrypted_wherever_it_runs(master: str) -> None:
    told = settings(master)
    assert told["spark.ui.enabled"] == told["spark.eventLog.enabled"] == "false"
    assert told["spark.io.encryption.enabled"] == "true"


@pytest.mark.parametrize("master", OURS)
def test_processes_of_our_own_encrypt_what_they_send(master: str) -> None:
    told = settings(master)
    assert told["spark.authenticate"] == told["spark.network.crypto.enabled"] == "true"
    assert not is_readable(told.get)


@pytest.mark.parametrize("master", OTHERS)
def test_a_cluster_of_others_keeps_the_secret_that_it_has(master: str) -> None:
    assert not any(name.startswith(("spark.authenticate", "spark.network")) for name in settings(master))
    assert secret_settings(master) == {}


def test_each_session_has_a_secret_of_its_own() -> None:
    assert secret_settings(OURS[0]) != secret_settings(OURS[0])


@pytest.mark.parametrize("master", [*OURS, *OTHERS])
def test_what_stands_on_the_command_line_has_no_secret(master: str) -> None:
    assert "spark.authenticate.secret" not in settings(master)


def test_a_cluster_with_certificates_is_not_readable() -> None:
    assert not is_readable({"spark.ssl.rpc.enabled": "true"}.get)
    assert is_readable({"spark.authenticate": "true"}.get)
