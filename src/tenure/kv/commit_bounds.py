"""The times between which a transaction must commit, if it has any.

Walk: leases, claims and locks set the bounds of a `kv.transaction`; `CommitProof.as_commit` sends them.
"""

from tenure.base.timestamp import Timestamp
from tenure.kv.commit_proof import CommitProof


class CommitBounds:
    proof: CommitProof

    @property
    def deadline_at(self) -> Timestamp | None:
        """The commit timestamp must lie before it."""
        return self.proof.deadline_at

    @deadline_at.setter
    def deadline_at(self, at: Timestamp | None) -> None:
        self.proof.deadline_at = at

    @property
    def not_before_at(self) -> Timestamp | None:
        """The commit timestamp must lie after it."""
        return self.proof.not_before_at

    @not_before_at.setter
    def not_before_at(self, at: Timestamp | None) -> None:
        self.proof.not_before_at = at
