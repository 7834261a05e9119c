"""Commits of many clients, handed over together."""

import asyncio
from functools import partial

import pytest

from tenure.pgwire.threads.gathered_commits import QUIET_TURNS, Gathering

TURNS = QUIET_TURNS + 2


class Clients:
    """Clients by name, and the groups that their commits were handed over in."""

    def __init__(self) -> None:
        self._gathering = Gathering(asyncio.get_running_loop().call_soon)
        self.handed_over: list[str] = []

    def commit(self, *names: str) -> None:
        for name in names:
            self._gathering.add(partial(self._submit, name))

    def _submit(self, name: str) -> None:
        self.handed_over.append(name)

    def end(self) -> list[str]:
        """Those under way are decided; returns who they were."""
        group, self.handed_over = self.handed_over, []
        for _ in group:
            self._gathering.ended()
        return group


async def turns(count: int = TURNS) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.invariant("lone-commit")
def test_a_lone_commit_is_handed_over_at_once_again_and_again() -> None:
    async def run() -> None:
        clients = Clients()
        for _ in range(3):
            clients.commit("a")
            assert clients.end() == ["a"]

    asyncio.run(run())


def test_what_comes_while_one_is_under_way_waits_and_goes_together() -> None:
    async def run() -> None:
        clients = Clients()
        clients.commit("a", "b", "c")
        await turns()
        assert clients.end() == ["a"]
        await turns()
        assert clients.handed_over == ["b", "c"]

    asyncio.run(run())


def test_those_of_the_last_group_are_waited_for_and_with_the_last_of_them_they_go() -> None:
    async def run() -> None:
        clients = Clients()
        clients.commit("a", "b", "c")
        clients.end()
        await turns()
        assert clients.end() == ["b", "c"]
        clients.commit("b")
        await turns(1)
        assert not clients.handed_over
        clients.commit("c")
        assert clients.handed_over == ["b", "c"]

    asyncio.run(run())


def test_each_turn_that_brings_another_prolongs_the_wait() -> None:
    async def run() -> None:
        clients = Clients()
        clients.commit("a", "b", "c", "d", "e", "f", "g", "h")
        clients.end()
        await turns()
        clients.end()
        for name in "abcdef":
            clients.commit(name)
            await turns(QUIET_TURNS - 1)
        assert not clients.handed_over
        await turns()
        assert clients.handed_over == ["a", "b", "c", "d", "e", "f"]

    asyncio.run(run())


def test_who_waits_for_companions_that_do_not_come_is_handed_over_after_some_quiet_turns() -> None:
    async def run() -> None:
        clients = Clients()
        clients.commit("a", "b", "c")
        clients.end()
        await turns()
        assert clients.end() == ["b", "c"]
        clients.commit("a")
        assert not clients.handed_over
        await turns()
        assert clients.end() == ["a"]
        clients.commit("a")
        assert clients.end() == ["a"]

    asyncio.run(run())


def test_nothing_is_handed_over_before_all_of_a_group_have_ended() -> None:
    async def run() -> None:
        handed_over: list[str] = []
        gathering = Gathering(asyncio.get_running_loop().call_soon)
        for name in "abc":
            gathering.add(partial(handed_over.append, name))
        gathering.ended()
        await turns()
        gathering.add(partial(handed_over.append, "d"))
        gathering.ended()
        await turns()
        assert handed_over == ["a", "b", "c"]
        gathering.ended()
        await turns()
        assert handed_over == ["a", "b", "c", "d"]

    asyncio.run(run())


def test_one_that_waits_can_be_withdrawn_and_the_rest_goes_on() -> None:
    async def run() -> None:
        handed_over: list[str] = []
        gathering = Gathering(asyncio.get_running_loop().call_soon)
        a, b, c = (partial(handed_over.append, name) for name in "abc")
        for each in (a, b, c):
            gathering.add(each)
        assert not gathering.withdraw(a), "it is under way"
        assert gathering.withdraw(b)
        gathering.ended()  # of b
        await turns()
        assert handed_over == ["a"]
        gathering.ended()
        await turns()
        assert handed_over == ["a", "c"]

    asyncio.run(run())
