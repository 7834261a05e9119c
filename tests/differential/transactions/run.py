"""Many scripts by seed: each is written, played by one node and by two; what differs is shrunk and told.

A step that is refused here is left out, and the rest is played again.

Walk: `test_transactions` and `tests.differential.__main__` call `run_scripts`.
"""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from random import Random

from tests.differential.transactions.cluster import Cluster, Peer, quiet
from tests.differential.transactions.play import Kind, Outcome, played, recorded
from tests.differential.transactions.shrinking import shrunk
from tests.differential.transactions.steps import Step
from tests.differential.transactions.writer import Writer
from tests.postgres_server import Server

REFUSALS_MAX = 4
"""So many steps are left out of one script before the rest of it is given up."""
SHRUNK_MAX = 2
"""How many failures of one kind are shrunk."""


@dataclass
class Failure:
    seed: int
    nodes: int
    steps: list[Step]
    outcome: Outcome

    @property
    def kind(self) -> tuple[str, ...]:
        return (self.outcome.about, *self.outcome.states)

    @property
    def script(self) -> str:
        lines = [each.shown for each in self.steps[: self.outcome.at + 1]]
        head = f"-- seed {self.seed}, {self.nodes} node(s)"
        return "\n".join(
            [head, *lines, f"-- here:\n    {self.outcome.ours}", f"-- PostgreSQL:\n    {self.outcome.theirs}"]
        )


@dataclass
class ScriptReport:
    scripts: int = 0
    statements: int = 0
    errors: int = 0
    heads: Counter[str] = field(default_factory=Counter)
    kinds: Counter[Kind] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    undetermined: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    failure_kinds: Counter[tuple[str, ...]] = field(default_factory=Counter)


def run_scripts(server: Server, seed: int, scripts: int) -> ScriptReport:
    report = ScriptReport()
    with quiet(), closing(Scripts(server)) as play:
        for each in range(seed, seed + scripts):
            play.run(each, report)
    return report


class Scripts:
    def __init__(self, server: Server) -> None:
        self._peer = Peer(server)
        self._clusters = [Cluster(1), Cluster(2)]

    def close(self) -> None:
        for each in self._clusters:
            each.stop()

    def run(self, seed: int, report: ScriptReport) -> None:
        steps = self.written(seed)
        record = recorded(self._peer, steps)
        report.scripts += 1
        report.statements += len(steps)
        report.errors += sum(bool(each.answer.sqlstate) for each in record.replies)
        report.heads.update(each.head for each in steps)
        if not record.is_determined:
            report.kinds[Kind.UNDETERMINED] += 1
            return
        for cluster in self._clusters:
            if not self._play(cluster, seed, steps, report):
                # What one node answers wrongly, two do as well.
                break

    def written(self, seed: int) -> list[Step]:
        with self._peer.clients() as clients:
            return Writer(Random(seed), clients).write()

    def _play(self, cluster: Cluster, seed: int, steps: list[Step], report: ScriptReport) -> bool:
        """Whether the answers were the same, as far as they can be compared."""
        for _ in range(REFUSALS_MAX):
            outcome = self._outcome(cluster, steps)
            if outcome.kind is not Kind.REFUSED:
                break
            report.refusals[outcome.ours] += 1
            report.refused.setdefault(outcome.ours, steps[outcome.at].shown)
            steps = steps[: outcome.at] + steps[outcome.at + 1 :]
        report.kinds[outcome.kind] += 1
        if outcome.kind is Kind.UNDETERMINED:
            report.undetermined[outcome.states] += 1
        if outcome.kind is Kind.DIFFERENT:
            failure = Failure(seed, cluster.size, steps, outcome)
            report.failure_kinds[failure.kind] += 1
            if report.failure_kinds[failure.kind] <= SHRUNK_MAX:
                report.failures.append(self._shrunk(cluster, failure))
        return outcome.kind is not Kind.DIFFERENT

    def _outcome(self, cluster: Cluster, steps: list[Step]) -> Outcome:
        record = recorded(self._peer, steps)
        return played(cluster, steps, record) if record.is_determined else Outcome(Kind.UNDETERMINED)

    def _shrunk(self, cluster: Cluster, failure: Failure) -> Failure:
        def fails(steps: list[Step]) -> bool:
            found = self._outcome(cluster, steps)
            return found.kind is Kind.DIFFERENT and (found.about, *found.states) == failure.kind

        steps = shrunk(failure.steps, fails)
        return Failure(failure.seed, failure.nodes, steps, self._outcome(cluster, steps))
