"""Where Spark may run for which store."""

import socket

import pytest

from tenure.base.errors import InvalidParameter, MasterUnreachable
from tenure.pipeline.masters import (
    check_master,
    check_reachable,
    is_about_master,
    is_local,
    with_failures,
)

HERE = (
    "local",
    "local[*]",
    "local[4]",
    "local[2,3]",
    "local-cluster[2,1,1024]",
    "spark://127.0.0.1:7077",
    "spark://127.8.9.1:7077",
    "spark://localhost:7077",
    "spark://[::1]:7077",
)
ELSEWHERE = (
    "spark://10.0.0.1:7077",
    "spark://example.com:7077",
    "spark://localhost.example.com:7077",
    "spark://127.0.0.1:7077,10.0.0.1:7077",
    "spark://127.0.0.1",
    "yarn",
    "k8s://https://127.0.0.1:6443",
    "",
    "local[x]",
    "local[2]x",
)


@pytest.mark.parametrize("master", HERE)
def test_a_sqlite_store_allows_masters_on_this_machine(master: str) -> None:
    check_master(master, is_store_local=True)


@pytest.mark.parametrize("master", ELSEWHERE)
def test_a_sqlite_store_refuses_any_other_master(master: str) -> None:
    with pytest.raises(InvalidParameter, match="not on this machine"):
        check_master(master, is_store_local=True)


@pytest.mark.parametrize("master", HERE + ELSEWHERE)
def test_a_store_on_the_network_allows_any_master(master: str) -> None:
    check_master(master, is_store_local=False)


def test_a_local_master_is_told_how_often_to_try() -> None:
    tried = [with_failures(master, 4) for master in ("local", "local[*]", "local[3]", "local[3,1]")]
    assert tried == ["local[1,4]", "local[*,4]", "local[3,4]", "local[3,4]"]


def test_other_masters_are_left_as_they_are() -> None:
    assert with_failures("spark://127.0.0.1:7077", 4) == "spark://127.0.0.1:7077"
    assert not is_local("local-cluster[2,1,1024]")


def test_a_master_that_nobody_listens_at_is_told_by_its_name() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(MasterUnreachable, match="cannot be reached: Connection refused") as caught:
        check_reachable(f"spark://127.0.0.1:{port}")
    assert is_about_master(str(caught.value)) and f"spark://127.0.0.1:{port}" in str(caught.value)


def test_a_master_that_listens_or_is_no_other_process_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"spark://127.0.0.1:{server.getsockname()[1]}")
    check_reachable("local[*]")
