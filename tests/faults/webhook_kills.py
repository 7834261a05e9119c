"""Nodes with a changefeed to a webhook are killed or stand still, and the receiver fails: what it has
rebuilds the table, and a node that goes on after its session has ended sends nothing more.

Walk: `__main__` and `test_sql_smoke` call `webhook_kill` with a `Run`.
"""

import random
import signal
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory

from tenure.base.timestamp import parse
from tests.faults.feed_kills import CATCH_UP_SECONDS, NODES, differs, load
from tests.faults.harness import Result, Run, wait_for
from tests.faults.sql_nodes import TTL_SECONDS, SqlNodes
from tests.unit.changefeed.feeding import Rebuilt
from tests.webhook_server import Request, WebhookServer, answer

FAILURES = 0.2
"""Of all requests."""

STOP_SECONDS = 4 * TTL_SECONDS
"""The other node finds the session dead, and retries after a pause."""


def webhook_kill(run: Run) -> Result:
    """Nothing is lost, no resolved timestamp lies, and a former run sends nothing after its successor."""
    result, kills, stops, until = Result(), 0, 0, time.monotonic() + run.seconds
    with TemporaryDirectory() as directory, SqlNodes(run, "webhook_kill") as nodes:
        receiver = Receiver(Path(directory), nodes.rng)
        nodes.start(*NODES)
        nodes.execute("n0", "SET CLUSTER SETTING changefeed.webhook.networks = '127.0.0.0/8, ::1/128'")
        nodes.execute("n0", "SET CLUSTER SETTING changefeed.webhook.ports = '1-65535'")
        nodes.execute("n0", "CREATE TABLE t (k int PRIMARY KEY, v int)")
        sink = receiver.server.url()
        ((job,),) = nodes.execute(
            "n0", f"CREATE CHANGEFEED FOR t INTO '{sink}' WITH updated, resolved = '50ms'"
        )
        while not kills or time.monotonic() < until:
            killed, other = NODES[kills % 2], NODES[(kills + 1) % 2]
            load(nodes, other, nodes.rng)
            nodes.kill(killed)
            kills += 1
            load(nodes, other, nodes.rng)
            nodes.start(killed)
            stops += _stand_still(nodes, other, receiver)
        receiver.share = 0.0
        ((now,),) = nodes.execute("n0", "SELECT cluster_logical_timestamp()::text")
        result.require(
            wait_for(lambda: receiver.resolved_at() >= parse(now), CATCH_UP_SECONDS), "the feed is behind"
        )
        result.violations += receiver.wrong(nodes)
        nodes.execute("n0", f"CANCEL JOB {job} AND WAIT")
        nodes.stop(result)
        receiver.server.close()
    requests = receiver.server.requests
    runs = len({each.headers["Tenure-Run"] for each in requests})
    result.counts |= {"kills": kills, "takeovers": stops, "runs": runs}
    result.counts |= {"requests": len(requests), "failures": receiver.failures}
    return result


def _stand_still(nodes: SqlNodes, name: str, receiver: "Receiver") -> bool:
    """Stops a node for longer than its session lasts; returns whether another run took over meanwhile."""
    newest = receiver.newest_run()
    nodes.signal(name, signal.SIGSTOP)
    is_taken = wait_for(lambda: receiver.newest_run() > newest, STOP_SECONDS)
    nodes.signal(name, signal.SIGCONT)
    return is_taken


class Receiver:
    def __init__(self, directory: Path, rng: random.Random) -> None:
        self.server = WebhookServer(directory)
        self.server.refuse = self._refuse
        self.share = FAILURES
        self._rng = random.Random(rng.random())
        self.failures = 0

    def _refuse(self, handler: BaseHTTPRequestHandler, request: Request) -> bool:
        if self._rng.random() >= self.share:
            return False
        self.failures += 1
        if self._rng.random() < 0.5:
            answer(handler, 503)
        handler.close_connection = True  # otherwise without an answer
        return True

    def resolved_at(self) -> int:
        told = [each.value["resolved"] for each in [*self.server.requests] if "resolved" in each.value]
        return max(map(parse, told), default=0)

    def newest_run(self) -> int:
        return max((int(each.headers["Tenure-Run"]) for each in [*self.server.requests]), default=0)

    def wrong(self, nodes: SqlNodes) -> list[str]:
        """What each request says is compared with the table at its resolved timestamp."""
        rebuilt, there, newest_run = Rebuilt(), set(), 0
        with nodes.connect("n0") as client:
            for request in self.server.requests:
                if int(request.headers["Tenure-Run"]) < newest_run:
                    return ["a former run has sent after its successor"]
                newest_run = int(request.headers["Tenure-Run"])
                for message in request.value.get("payload", ()):
                    rebuilt.take(message)
                    text = str(message)
                    if parse(message["updated"]) <= rebuilt.resolved_at and text not in there:
                        return [f"{text} comes after it was resolved"]
                    there.add(text)
                resolved = request.value.get("resolved")
                if resolved is None or parse(resolved) < rebuilt.resolved_at:
                    continue
                rebuilt.resolve(parse(resolved))
                if differs(client, rebuilt, resolved):
                    return [f"the table differs at {resolved}"]
        return []
