"""TLS: files that can be trusted, versions that can, and the hash that a login is bound to."""

import os
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import UnfitCertificate
from tenure.pgwire.login.tls import PROTOCOL, load, server_end_point
from tests.unit.pgwire.certificates import Pair, make_certificate, openssl

RSA = ("-newkey", "rsa:2048")
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
KINDS = {
    "ecdsa sha256": ((*EC, "-sha256"), "sha256"),
    "ecdsa sha384": ((*EC, "-sha384"), "sha384"),
    "ecdsa sha512": ((*EC, "-sha512"), "sha512"),
    "ecdsa sha1": ((*EC, "-sha1"), "sha256"),
    "rsa sha256": ((*RSA, "-sha256"), "sha256"),
    "rsa sha512": ((*RSA, "-sha512"), "sha512"),
    "rsa sha224": ((*RSA, "-sha224"), "sha224"),
    "rsa-pss sha384": ((*RSA, "-sha384", "-sigopt", "rsa_padding_mode:pss"), "sha384"),
}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return make_certificate(tmp_path)


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[str | None, str | None]:
    """Returns the version and the protocol that both agree on."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
    ]
    open_sides = list(sides)
    while open_sides:
        for side in list(open_sides):
            try:
                side.do_handshake()
                open_sides.remove(side)
            except ssl.SSLWantReadError:
                pass
    return sides[0].version(), sides[1].selected_alpn_protocol()


def test_a_client_that_trusts_the_certificate_gets_through(pair: Pair) -> None:
    client = ssl.create_default_context(cafile=str(pair.certificate))
    client.set_alpn_protocols([PROTOCOL])
    assert _shake_hands(load(*pair).context, client) == ("TLSv1.3", PROTOCOL)


def test_tls_1_2_is_the_oldest_version(pair: Pair) -> None:
    tls = load(*pair)
    client = ssl.create_default_context(cafile=str(pair.certificate))
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert _shake_hands(tls.context, client) == ("TLSv1.2", None)
    assert tls.context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("kind", KINDS)
def test_the_binding_is_the_certificates_hash_by_its_own_function(tmp_path: Path, kind: str) -> None:
    options, digest = KINDS[kind]
    pair = make_certificate(tmp_path, *options)
    shown = openssl("x509", "-in", str(pair.certificate), "-noout", "-fingerprint", f"-{digest}")
    assert load(*pair).binding.hex(":").upper() == shown.decode().strip().partition("=")[2]


def test_a_certificate_whose_signature_has_no_hash_function_has_no_binding(tmp_path: Path) -> None:
    assert load(*make_certificate(tmp_path, "-newkey", "ed25519")).binding == b""


def test_the_first_certificate_of_a_chain_is_the_nodes_own(tmp_path: Path, pair: Pair) -> None:
    (tmp_path / "other").mkdir()
    other = make_certificate(tmp_path / "other")
    alone = load(*pair).binding
    chain = tmp_path / "chain.crt"
    chain.write_text("a comment\n" + pair.certificate.read_text() + other.certificate.read_text())
    assert load(chain, pair.key).binding == alone


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o602])
def test_a_key_that_others_can_read_is_refused(pair: Pair, mode: int) -> None:
    pair.key.chmod(mode)
    with pytest.raises(UnfitCertificate, match="has group or world access") as caught:
        load(*pair)
    assert str(pair.key) in str(caught.value) and "0600" in caught.value.detail


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_somebody_else_is_refused(pair: Pair) -> None:
    os.chown(pair.key, 65534, 65534)
    with pytest.raises(UnfitCertificate, match="must be owned"):
        load(*pair)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_for_its_owner_alone_is_taken(pair: Pair, mode: int) -> None:
    pair.key.chmod(mode)
    assert load(*pair).binding


def test_a_key_that_is_not_there_is_named(pair: Pair) -> None:
    pair.key.unlink()
    with pytest.raises(UnfitCertificate, match=r'private key file ".*node\.key": No such file'):
        load(*pair)


def test_a_key_that_is_no_file_is_refused(pair: Pair) -> None:
    pair.key.unlink()
    pair.key.mkdir(mode=0o700)
    with pytest.raises(UnfitCertificate, match="not a regular file"):
        load(*pair)


def test_a_certificate_that_is_not_there_is_named(pair: Pair) -> None:
    pair.certificate.unlink()
    with pytest.raises(UnfitCertificate, match=r"node\.crt.*No such file"):
        load(*pair)


@pytest.mark.parametrize("text", ["", "no certificate\n", "\0"])
def test_a_file_without_a_certificate_is_refused(pair: Pair, text: str) -> None:
    pair.certificate.write_text(text)
    with pytest.raises(UnfitCertificate, match=r"node\.crt"):
        load(*pair)


def test_a_certificate_under_another_heading_is_refused(pair: Pair) -> None:
    text = pair.certificate.read_text().replace(" CERTIFICATE", " TRUSTED CERTIFICATE")
    pair.certificate.write_text(text)
    with pytest.raises(UnfitCertificate, match="BEGIN CERTIFICATE"):
        load(*pair)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path, pair: Pair) -> None:
    (tmp_path / "other").mkdir()
    other = make_certificate(tmp_path / "other")
    with pytest.raises(UnfitCertificate, match="mismatch"):
        load(pair.certificate, other.key)


def test_an_encrypted_key_is_refused_without_asking_anybody(tmp_path: Path, pair: Pair) -> None:
    locked = tmp_path / "locked.key"
    openssl("pkey", "-in", str(pair.key), "-aes256", "-passout", "pass:x", "-out", str(locked))
    locked.chmod(0o600)
    with pytest.raises(UnfitCertificate, match="passphrase"):
        load(pair.certificate, locked)


@given(st.binary(max_size=80))
def test_bytes_that_are_no_certificate_have_no_binding_or_one_of_a_known_length(data: bytes) -> None:
    assert len(server_end_point(data)) in (0, 28, 32, 48, 64)
    assert len(server_end_point(b"\x30\x0a" + data)) in (0, 28, 32, 48, 64)
