"""The door of a node for SQL clients, and what reaches it through other nodes: cancels, inquiries,
notifications.

Walk: `node.py` calls `open_door` last, if the node serves SQL; this makes the `Front` and starts its loops.
"""

from collections.abc import Callable

from tenure.cluster.cancels import Cancels
from tenure.cluster.inquiries import Ask, Inquiries
from tenure.cluster.jobs.runs import SQL
from tenure.composition.cluster_layer import ClusterLayer
from tenure.composition.node_start import NodeStart
from tenure.front import Front, Listen
from tenure.sql.session.services import Services
from tenure.sql.tables.node_view import NodeView


def open_door(
    start: NodeStart,
    listen: Listen,
    services: Services,
    cluster: ClusterLayer,
    view: Callable[[Ask, Callable[[int, bytes], None]], NodeView],
) -> Front:
    """Serves SQL; `view` makes the system tables' view of the node, given the functions that ask other nodes
    and end what runs there.
    """
    lifecycle, store = start.lifecycle, services.store
    cancels = Cancels(store, cluster.sessions, cluster.instance)
    lifecycle.on_stop(cancels.close)
    inquiries = Inquiries(store, cluster.sessions, cluster.session_id, needs=SQL)
    lifecycle.on_stop(inquiries.close)
    notifications = services.notifications
    lifecycle.on_stop(notifications.close)
    notifications.start()
    instance, announce = cluster.liveness.last_instance, cluster.liveness.announce
    shown = view(inquiries.ask, cancels.signal)
    front = Front(services, shown, listen, cancels, inquiries, instance=instance, announce=announce)
    lifecycle.on_stop_close("door", front.stop)
    duck = services.duck
    assert duck is not None
    lifecycle.run(
        lifecycle.loop("columns", duck.step),
        lifecycle.loop("cancels", cancels.follow, interrupt=cancels.wake),
        lifecycle.loop("inquiries", inquiries.follow, interrupt=inquiries.wake),
        lifecycle.loop("old inquiries", inquiries.tidy),
        lifecycle.loop("notifications", notifications.follow, interrupt=notifications.wake),
        lifecycle.loop("old notifications", notifications.tidy),
    )
    # Drained first: clients are told at once, and those that wait for other sessions can still cancel.
    lifecycle.on_stop_close("SQL", front.drain)
    return front
