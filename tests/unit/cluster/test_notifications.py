"""Notifications through the store: to the listeners of every node, once, in commit order."""

import pytest

from tenure.base.env import ManualEnv
from tenure.cluster.notifications import Arrival, Notifications
from tenure.kv.keys import NOTIFICATIONS
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tests.unit.cluster.members import Member, expire

DATABASE = 100


class Ear:
    """A listener that writes down what it hears."""

    def __init__(self, notifications: Notifications, *channels: str, database: int = DATABASE) -> None:
        self.heard: list[tuple[str, str]] = []
        self.arrivals: list[Arrival] = []
        self.has_lost = False
        for channel in channels:
            notifications.add(self, database, channel)

    def arrive(self, arrival: Arrival) -> None:
        self.arrivals.append(arrival)
        self.heard.append((arrival.channel, arrival.payload))

    def lose(self) -> None:
        self.has_lost = True


def started(member: Member) -> Notifications:
    member.start()
    notifications = Notifications(member.store, member.sessions, lambda: member.liveness.session().id)
    notifications.start()
    return notifications


def notify(member: Member, notifications: Notifications, *told: tuple[str, str]) -> None:
    number = notifications.next_number()

    def run(txn: Transaction) -> None:
        for channel, payload in told:
            notifications.put(txn, number, database=DATABASE, pid=7, channel=channel, payload=payload)

    member.transact(run)


def left_over(member: Member) -> list[bytes]:
    snapshot, keyspace = member.store.snapshot(), member.store.keyspace
    return [key for key, _ in snapshot.scan(keyspace.index_span(NOTIFICATIONS))]


@pytest.mark.invariant("notified-once")
def test_listeners_of_all_nodes_hear_each_once_in_commit_order(member: Member, other: Member) -> None:
    first, second = started(member), started(other)
    ears = [Ear(first, "a"), Ear(second, "a", "b")]
    notify(member, first, ("a", "1"))
    notify(other, second, ("b", "2"), ("a", "3"))
    notify(member, first, ("a", "1"))
    for _ in range(2):
        first.follow()
        second.follow()
    assert ears[0].heard == [("a", "1"), ("a", "3"), ("a", "1")]
    assert ears[1].heard == [("a", "1"), ("b", "2"), ("a", "3"), ("a", "1")]
    times = [each.at for each in ears[1].arrivals]
    assert times == sorted(times)


def test_a_transaction_notifies_of_the_same_once_and_in_its_order(member: Member) -> None:
    notifications = started(member)
    ear = Ear(notifications, "a", "b")
    notify(member, notifications, ("b", "1"), ("a", "1"), ("b", "1"), ("a", "0"), ("b", ""))
    notifications.follow()
    assert ear.heard == [("b", "1"), ("a", "1"), ("a", "0"), ("b", "")]


def test_other_channels_and_databases_are_not_heard(member: Member) -> None:
    notifications = started(member)
    ears = [Ear(notifications, "b"), Ear(notifications, "a", database=DATABASE + 1)]
    notify(member, notifications, ("a", "1"))
    notifications.follow()
    assert [each.heard for each in ears] == [[], []]


def test_who_was_removed_hears_no_more(member: Member) -> None:
    notifications = started(member)
    ear = Ear(notifications, "a")
    notifications.remove(ear, DATABASE, "a")
    notify(member, notifications, ("a", "1"))
    notifications.follow()
    assert ear.heard == []


def test_records_that_were_deleted_before_a_node_looked_are_heard_all_the_same(
    member: Member, other: Member
) -> None:
    sending, hearing = started(member), started(other)
    ear = Ear(hearing, "a")
    notify(member, sending, ("a", "1"))
    sending.tidy()
    assert left_over(member) == []
    hearing.follow()
    assert ear.heard == [("a", "1")]


def test_records_of_a_dead_node_are_deleted_by_another(env: ManualEnv, member: Member, other: Member) -> None:
    sending, living = started(member), started(other)
    notify(member, sending, ("a", "1"))
    living.tidy()
    assert len(left_over(other)) == 1
    expire(env)
    other.start()
    other.deaths.reap()
    living.tidy()
    assert left_over(other) == []


@pytest.mark.invariant("notified-once")
def test_after_a_gap_listeners_are_told_that_some_are_lost(member: Member) -> None:
    notifications = started(member)
    ear = Ear(notifications, "a")
    notify(member, notifications, ("a", "1"))
    keyspace = member.store.keyspace
    head = keyspace.head(NOTIFICATIONS)
    member.transact(lambda txn: publish_threshold(txn, keyspace, head, txn.read_at))
    notifications.follow()
    assert ear.has_lost
    assert ear.heard == []
