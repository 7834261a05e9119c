"""The roots of the error tree: each says whose fault an error is and who must act.

Message, detail and hint may reach clients, who must not learn where the store is or which account it uses.
Text that names its host, its user or its path is `private`; `for_operator` adds it for the log.

Walk: the other modules of `base.errors` derive their classes from these.
"""


class TenureError(Exception):
    sqlstate = "XX000"
    detail: str = ""
    position: int = 0
    """The position in the statement's text, counted in characters from 1; 0 if there is none."""
    where: str = ""
    """The context in which the error arose: "COPY t, line 3, column a"."""
    private: str = ""
    """Text for the operator's log alone."""

    def __init__(
        self, message: str, *, hint: str = "", detail: str = "", position: int = 0, private: str = ""
    ) -> None:
        super().__init__(message)
        self.hint = hint
        if private:
            self.private = private
        if detail:
            self.detail = detail
        if position:
            self.position = position


class RetryError(TenureError):
    """Run the transaction again; nothing was changed."""

    sqlstate = "40001"


class OutcomeUnknown(TenureError):
    """It may have committed; ask before doing it again."""

    sqlstate = "40003"


class TooEarly(TenureError):
    """The commit timestamp is not after the transaction's "not before": wait, then commit again."""

    sqlstate = "55000"


class SessionLost(TenureError):
    """This node must stop what it does under that session."""

    sqlstate = "57P01"


class UserError(TenureError):
    """Tell the client: the statement was wrong or impossible."""

    sqlstate = "22000"


class StoreError(TenureError):
    """The operator or the machine must act; nothing was changed."""

    sqlstate = "58000"


class CorruptData(TenureError):
    """Stop, never repair silently."""

    sqlstate = "XX001"


def for_operator(error: BaseException) -> str:
    """The message with the private text of the error and of its causes: for the log, not for clients."""
    private: list[str] = []
    cause: BaseException | None = error
    while isinstance(cause, TenureError):
        if cause.private and cause.private not in private:
            private.append(cause.private)
        cause = cause.__cause__
    return f"{error} [{'; '.join(private)}]" if private else str(error)
