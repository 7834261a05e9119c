"""Who may log in how: the whole table."""

from itertools import product

import pytest

from tenure.catalog.accounts.passwords import SALT_BYTES, parse_verifier, stored_password
from tenure.catalog.accounts.users import User
from tenure.pgwire.login.login_rules import Allow, AskPassword, Decision, LoginMode, Refuse, admit, decide

VERIFIER = stored_password("pencil", salt=bytes(SALT_BYTES))
ROOT = User("root", is_superuser=True)
ANN = User("ann", VERIFIER)
CASES = list(product(LoginMode, (False, True), (False, True), (ROOT, ANN)))


def _decide(user: User, *, mode: LoginMode, is_loopback: bool, is_tls: bool) -> Decision:
    return decide(user.name, user, is_tls=is_tls, is_loopback=is_loopback, mode=mode)


def _word(decision: Decision) -> str:
    return {Allow: "let in", AskPassword: "SCRAM", Refuse: "refused"}[type(decision)]


@pytest.mark.invariant("login-table")
@pytest.mark.parametrize(("mode", "is_loopback", "is_tls", "user"), CASES)
def test_the_table_holds(mode: LoginMode, is_loopback: bool, is_tls: bool, user: User) -> None:
    expected = {
        (LoginMode.LOCAL, True, "root"): "let in",
        (LoginMode.LOCAL, True, "ann"): "SCRAM",
        (LoginMode.INSECURE, True, "root"): "let in",
        (LoginMode.INSECURE, True, "ann"): "let in",
        (LoginMode.CERTIFICATE, True, "root"): "SCRAM",
        (LoginMode.CERTIFICATE, True, "ann"): "SCRAM",
        (LoginMode.CERTIFICATE, False, "root"): "SCRAM" if is_tls else "refused",
        (LoginMode.CERTIFICATE, False, "ann"): "SCRAM" if is_tls else "refused",
    }
    word = _word(_decide(user, mode=mode, is_loopback=is_loopback, is_tls=is_tls))
    assert word == expected.get((mode, is_loopback, user.name), "refused")


@pytest.mark.invariant("login-table")
@pytest.mark.parametrize("mode", [LoginMode.LOCAL, LoginMode.CERTIFICATE])
def test_an_unknown_user_is_asked_for_a_password_like_any_other(mode: LoginMode) -> None:
    assert decide("nobody", None, is_tls=False, is_loopback=True, mode=mode) == AskPassword(None)


def test_a_user_without_a_password_is_asked_for_one_that_is_never_right() -> None:
    decision = decide("bob", User("bob"), is_tls=False, is_loopback=True, mode=LoginMode.LOCAL)
    assert decision == AskPassword(None)


def test_a_password_is_checked_against_the_users_own_verifier() -> None:
    decision = _decide(ANN, mode=LoginMode.CERTIFICATE, is_loopback=False, is_tls=True)
    assert decision == AskPassword(parse_verifier(VERIFIER))


def test_a_user_that_may_not_log_in_hears_so_only_after_the_password() -> None:
    barred = User("ann", VERIFIER, can_login=False)
    assert _word(_decide(barred, mode=LoginMode.LOCAL, is_loopback=True, is_tls=False)) == "SCRAM"
    refused = admit("ann", barred)
    assert refused is not None and refused.sqlstate == "28000"
    assert str(refused) == 'role "ann" is not permitted to log in'


@pytest.mark.parametrize("user", [None, User("ann", can_login=False)])
def test_insecure_lets_in_only_users_that_are_there_and_may(user: User | None) -> None:
    decision = decide("ann", user, is_tls=False, is_loopback=True, mode=LoginMode.INSECURE)
    assert isinstance(decision, Refuse) and decision.error.sqlstate == "28000"


def test_plaintext_from_elsewhere_is_told_to_use_tls() -> None:
    decision = _decide(ANN, mode=LoginMode.CERTIFICATE, is_loopback=False, is_tls=False)
    assert isinstance(decision, Refuse) and "sslmode" in decision.error.hint
