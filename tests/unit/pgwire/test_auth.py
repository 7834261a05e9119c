"""SCRAM: the RFC's example, and everybody who tries to get in without the password."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import TenureError
from tenure.catalog.accounts import passwords
from tenure.catalog.accounts.passwords import SALT_BYTES, Verifier, verifier_of
from tenure.pgwire.login import scram
from tenure.pgwire.login.scram import NONCE_BYTES, PLAIN, PLUS, Scram, server_nonce
from tests.unit.pgwire.scram_client import ScramClient

SECRET = b"a secret of the cluster"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PENCIL = verifier_of("pencil", salt=SALT, iterations=4096)
END_POINT = hashlib.sha256(b"the server's certificate").digest()
BOUND = "p=tls-server-end-point,,"


def server(
    verifier: Verifier | None = PENCIL,
    *,
    user: str = "user",
    nonce: str = SERVER_NONCE,
    binding: bytes | None = None,
) -> Scram:
    return Scram(user, verifier, nonce=nonce, mock_secret=SECRET, binding=binding)


def log_in(scram: Scram, client: ScramClient) -> bytes:
    return scram.finish(client.final(scram.begin(client.mechanism, client.first())))


def refusal(work: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(TenureError) as caught:
        work()
    return caught.value.sqlstate, str(caught.value)


WRONG = ("28P01", 'password authentication failed for user "user"')


def test_the_example_of_rfc_7677_goes_byte_by_byte() -> None:
    scram = server()
    answer = scram.begin(PLAIN, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert answer == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    signature = scram.finish(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert signature == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_right_password_gets_in_and_the_server_proves_itself() -> None:
    client = ScramClient("pencil")
    assert client.accepts(log_in(server(), client))


def test_a_wrong_password_does_not() -> None:
    assert refusal(lambda: log_in(server(), ScramClient("Pencil"))) == WRONG


def test_a_proof_of_the_stored_key_alone_is_wrong() -> None:
    """Whoever has read the store cannot log in."""
    scram, client = server(), ScramClient("pencil")
    answer = scram.begin(PLAIN, client.first())
    forged = hmac.new(PENCIL.stored_key, client.final(answer), hashlib.sha256).digest()
    final = client.final(answer).rpartition(b",p=")[0] + b",p=" + b64encode(forged)
    assert refusal(lambda: scram.finish(final)) == WRONG


# Users that are not there


def test_an_unknown_user_gets_the_same_salt_each_time_and_another_one_than_others() -> None:
    client = ScramClient("pencil")
    answers = [server(None, user=user).begin(PLAIN, client.first()) for user in ("ann", "ann", "bob")]
    assert answers[0] == answers[1] != answers[2]


@pytest.mark.invariant("scram-unknown-user")
def test_an_unknown_user_hears_the_same_as_one_with_a_wrong_password() -> None:
    known = verifier_of("pencil", salt=bytes(SALT_BYTES))
    heard = [_heard(server(verifier), ScramClient("wrong")) for verifier in (known, None)]
    assert heard[0] == heard[1]


def _heard(scram: Scram, client: ScramClient) -> tuple[object, ...]:
    answer = scram.begin(PLAIN, client.first())
    shape = [(part[:1], len(part)) for part in answer.split(b",")]
    return scram.mechanisms, shape, refusal(lambda: scram.finish(client.final(answer)))


@pytest.mark.invariant("scram-unknown-user")
def test_an_unknown_user_costs_the_same_work(counted: Counter[str]) -> None:
    known = verifier_of("pencil", salt=bytes(SALT_BYTES))
    work = [_work(counted, verifier) for verifier in (known, None)]
    assert work[0] == work[1]
    assert "pbkdf2_hmac" not in work[0] and work[0]["digest"] == 5


def _work(counted: Counter[str], verifier: Verifier | None) -> dict[str, int]:
    counted.clear()
    refusal(lambda: log_in(server(verifier), ScramClient("wrong")))
    return dict(counted)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the server, and not the client, computes what takes time."""
    counts: Counter[str] = Counter()

    def count(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return function(*args, **kwargs)

        return counting

    for place, name in (
        (hmac, "digest"),
        (hmac, "compare_digest"),
        (passwords, "pbkdf2_hmac"),
        (passwords, "sha256"),
        (scram, "sha256"),
    ):
        monkeypatch.setattr(place, name, count(name, getattr(place, name)))
    return counts


def test_a_user_without_a_password_does_not_get_in_with_an_empty_one() -> None:
    assert refusal(lambda: log_in(server(None), ScramClient(""))) == WRONG


# Replays


@pytest.mark.invariant("scram-once")
def test_a_final_message_seen_before_is_refused_by_the_next_exchange() -> None:
    client, seen = ScramClient("pencil"), server(nonce=server_nonce())
    final = client.final(seen.begin(PLAIN, client.first()))
    seen.finish(final)
    again = server(nonce=server_nonce())
    again.begin(PLAIN, client.first())
    assert refusal(lambda: again.finish(final)) == ("08P01", "invalid SCRAM response")


@pytest.mark.invariant("scram-once")
def test_an_exchange_is_finished_once() -> None:
    client, scram = ScramClient("pencil"), server()
    final = client.final(scram.begin(PLAIN, client.first()))
    scram.finish(final)
    assert refusal(lambda: scram.finish(final))[0] == "08P01"


@pytest.mark.invariant("scram-once")
def test_there_is_no_second_try_after_a_wrong_proof() -> None:
    scram, right, wrong = server(), ScramClient("pencil"), ScramClient("x")
    answer = scram.begin(PLAIN, right.first())
    assert refusal(lambda: scram.finish(wrong.final(answer))) == WRONG
    assert refusal(lambda: scram.finish(right.final(answer)))[0] == "08P01"


def test_messages_out_of_turn_are_refused() -> None:
    assert refusal(lambda: server().finish(b"c=biws,r=x,p=x"))[0] == "08P01"
    scram = server()
    scram.begin(PLAIN, ScramClient("").first())
    assert refusal(lambda: scram.begin(PLAIN, ScramClient("").first()))[0] == "08P01"


def test_nonces_are_long_and_never_the_same() -> None:
    nonces = {server_nonce() for _ in range(100)}
    assert len(nonces) == 100
    assert all(len(b64decode(each)) == NONCE_BYTES >= 18 for each in nonces)


# Channel binding


def test_without_tls_only_the_plain_mechanism_is_offered() -> None:
    assert server().mechanisms == (PLAIN,)
    assert server(binding=b"").mechanisms == (PLAIN,)
    assert server(binding=END_POINT).mechanisms == (PLUS, PLAIN)


def test_a_bound_login_succeeds() -> None:
    client = ScramClient("pencil", header=BOUND, binding=END_POINT)
    assert client.accepts(log_in(server(binding=END_POINT), client))


@pytest.mark.invariant("scram-bound")
def test_a_login_bound_to_another_certificate_is_refused() -> None:
    client = ScramClient("pencil", header=BOUND, binding=hashlib.sha256(b"in between").digest())
    assert refusal(lambda: log_in(server(binding=END_POINT), client)) == (
        "28000",
        "SCRAM channel binding check failed",
    )


@pytest.mark.invariant("scram-bound")
def test_a_client_that_was_told_that_there_is_no_binding_is_refused() -> None:
    """Somebody in between has stripped the better mechanism from the offer."""
    client = ScramClient("pencil", header="y,,")
    assert refusal(lambda: log_in(server(binding=END_POINT), client)) == (
        "28000",
        "SCRAM channel binding negotiation error",
    )


@pytest.mark.invariant("scram-bound")
def test_a_flag_changed_on_the_way_is_noticed() -> None:
    client, scram = ScramClient("pencil", header="y,,"), server(binding=END_POINT)
    answer = scram.begin(PLAIN, b"n,," + client.first()[3:])
    assert refusal(lambda: scram.finish(client.final(answer)))[0] == "28000"


def test_a_client_that_cannot_bind_gets_in_over_tls() -> None:
    client = ScramClient("pencil", header="n,,")
    assert client.accepts(log_in(server(binding=END_POINT), client))


def test_a_client_that_could_bind_gets_in_where_there_is_nothing_to_bind_to() -> None:
    client = ScramClient("pencil", header="y,,")
    assert client.accepts(log_in(server(), client))


@pytest.mark.parametrize(
    ("mechanism", "header", "sqlstate"),
    [
        (PLUS, "n,,", "08P01"),
        (PLUS, "p=tls-unique,,", "08P01"),
        (PLAIN, BOUND, "08P01"),
        (PLAIN, "n,a=root,", "28000"),
        ("SCRAM-SHA-1", "n,,", "08P01"),
        ("PLAIN", "n,,", "08P01"),
    ],
)
def test_mechanism_and_flag_must_go_together(mechanism: str, header: str, sqlstate: str) -> None:
    first = ScramClient("pencil", header=header).first()
    assert refusal(lambda: server(binding=END_POINT).begin(mechanism, first))[0] == sqlstate


def test_a_bound_mechanism_that_was_not_offered_is_refused() -> None:
    assert refusal(lambda: server().begin(PLUS, ScramClient("", header=BOUND).first()))[0] == "08P01"


# Messages that make no sense


@pytest.mark.parametrize(
    "first",
    [
        None,
        b"",
        b"n,,",
        b"n,,r=x",
        b"n,,n=,r=",
        b"n,,m=x,n=,r=x",
        b"x,,n=,r=x",
        b"n,,n=,r=a b",
        b"n,,n=,r=\xff",
        b"n,,n=,r=" + b"x" * 10_000,
    ],
)
def test_a_first_message_that_makes_no_sense_is_refused(first: bytes | None) -> None:
    assert refusal(lambda: server().begin(PLAIN, first)) == ("08P01", "malformed SCRAM message")


@pytest.mark.parametrize(
    "proof", [b"", b",p=", b",p=AAAA", b",p=!", b",p=" + b"A" * 44, b",p=x,p=y", b"\xff"]
)
def test_a_proof_that_makes_no_sense_is_refused(proof: bytes) -> None:
    scram, client = server(), ScramClient("pencil")
    final = client.final(scram.begin(PLAIN, client.first())).rpartition(b",p=")[0] + proof
    assert refusal(lambda: scram.finish(final))[0] == "08P01"


@given(first=st.binary(max_size=60), final=st.binary(max_size=60))
def test_any_bytes_give_an_error_of_the_user(first: bytes, final: bytes) -> None:
    refusal(lambda: server().begin(PLAIN, b"n,,n=" + first))
    scram = server()
    scram.begin(PLAIN, ScramClient("").first())
    refusal(lambda: scram.finish(final))


def test_a_changed_answer_of_the_server_spoils_the_proof() -> None:
    """Fewer iterations, told by somebody in between, would make the password cheap to guess."""
    scram, client = server(), ScramClient("pencil")
    answer = scram.begin(PLAIN, client.first()).replace(b"i=4096", b"i=1")
    assert refusal(lambda: scram.finish(client.final(answer))) == WRONG
