"""The holders of jobs: whether each still holds its jobs, and when to look again.

    a claim's session expires ──► the session is deleted ──► its jobs are available

A node that waits for an expiry deletes the session itself; sessions found gone are remembered by `Deaths`.
Until a cluster is finalized a job may also be held by an instance's lease, which ends with its heartbeat.

Invariant (I26): a runnable job whose claimant died is adopted once the session has expired.

Walk: `cluster.jobs.runner` calls `look` in each step, `cluster.jobs.adoption` asks `is_available`; this calls
`Deaths.expiry` and `Deaths.bury`.
"""

from tenure.base.timestamp import MAX_AT, Timestamp, add_seconds
from tenure.cluster.jobs.job_records import NOBODY
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.jobs.open_jobs import JobHolder, OpenJobs
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.store import Store

BURY_SECONDS = 0.05
"""The pause between two looks at a session that has expired by this node's clock, but not by the store's."""


class JobHolders:
    def __init__(self, store: Store, deaths: Deaths, jobs: Jobs) -> None:
        self._store = store
        self._deaths = deaths
        self._jobs = jobs
        self._expiries: dict[SessionId, Timestamp] = {}
        self._lease_ends: dict[int, Timestamp] = {}
        """When claims and leases of others end, as last read. That time only moves up: before it there is no
        need to look again.
        """

    def is_available(
        self, open_jobs: OpenJobs, holder: JobHolder, session: NodeSession, now_at: Timestamp
    ) -> bool:
        """Whether the jobs of a holder may be adopted under this session."""
        claim, lease = self._as_held(open_jobs, holder)
        if claim not in (NOBODY, session.id) and not self._deaths.is_dead(claim):
            return False
        held_until_at = self._lease_ends.get(lease, MAX_AT)  # a lease that was not read counts as held
        return lease in (NOBODY.instance, session.id.instance) or held_until_at < now_at

    def _as_held(self, open_jobs: OpenJobs, holder: JobHolder) -> JobHolder:
        """The holder as this cluster's way of holding jobs sees it."""
        claims, control = self._jobs.claims(), next(iter(open_jobs.of(holder).values()))
        return JobHolder(claims.claim_of(control), claims.lease_of(control))

    def look(self, open_jobs: OpenJobs, session: NodeSession) -> list[Timestamp]:
        """Finds out which holders are gone; returns the times to look again, for retries and for expiries."""
        now_at = self._store.clock.now()
        open_jobs.take_due(now_at)
        holders = [self._as_held(open_jobs, holder) for holder in open_jobs.holders()]
        due = self._look_at_leases({lease for _, lease in holders} - {session.id.instance}, now_at)
        due += self._look_at_claims({claim for claim, _ in holders} - {session.id}, now_at)
        retry_at = open_jobs.next_retry_at()
        return due if retry_at is None else [*due, retry_at]

    def _look_at_claims(self, claims: set[SessionId], now_at: Timestamp) -> list[Timestamp]:
        """Reads when the sessions of others expire, and deletes those that have expired."""
        self._expiries = {claim: at for claim, at in self._expiries.items() if claim in claims}
        due = []
        for claim in sorted(claims - {NOBODY}):
            expires_at = self._expiries.get(claim)
            if self._deaths.is_dead(claim):
                continue
            if expires_at is None or expires_at < now_at:
                expires_at = self._deaths.expiry(claim)
                if expires_at is None or (expires_at < now_at and self._deaths.bury(claim)):
                    continue
                self._expiries[claim] = expires_at
            due.append(max(expires_at, add_seconds(now_at, BURY_SECONDS)))
        return due

    def _look_at_leases(self, leases: set[int], now_at: Timestamp) -> list[Timestamp]:
        """Reads when leases of instances end; jobs of ended leases are available."""
        ends = {lease: at for lease, at in self._lease_ends.items() if lease in leases and at >= now_at}
        unread = sorted(leases - {NOBODY.instance} - ends.keys())
        if unread:
            claims, snapshot = self._jobs.claims(), self._store.snapshot()
            ends |= {lease: claims.lease_expiry(snapshot, lease) for lease in unread}
        self._lease_ends = ends
        return [at for at in ends.values() if at >= now_at]
