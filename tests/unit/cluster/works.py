"""A kind of job whose runs can be counted, and made to fail."""

from tenure.cluster.jobs.runs import JobKind, Run


class Work:
    """A kind of job that notes its runs, and fails or breaks as it is told to."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self.reverts: list[tuple[int, int]] = []
        self.errors: list[Exception] = []
        self.revert_errors: list[Exception] = []

    def run(self, run: Run) -> None:
        self.runs.append((run.job.id, run.fence.run))
        if self.errors:
            raise self.errors.pop(0)

    def revert(self, run: Run) -> None:
        self.reverts.append((run.job.id, run.fence.run))
        run.check()
        if self.revert_errors:
            raise self.revert_errors.pop(0)

    def kinds(
        self, *, attempts_max: int | None = None, blocked_attempts_max: int | None = None
    ) -> dict[str, JobKind]:
        return {"work": JobKind(self.run, self.revert, attempts_max, blocked_attempts_max)}
