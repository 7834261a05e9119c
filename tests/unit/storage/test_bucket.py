"""A bucket: what its errors mean, what it shows of its credentials, and what a failed upload leaves."""

import io
import shutil

import pytest

from tenure.base.errors import FileMissing, InputOutput, InvalidParameter, NoPermission, StoreError
from tenure.storage.bucket import Credentials, translated
from tenure.storage.files import Files, open_files

DENIED = (
    "When reading information for key 'a' in bucket 'b': AWS Error {} during HeadObject operation: CANARY"
)


@pytest.mark.parametrize(
    ("text", "kind", "sqlstate"),
    [
        (DENIED.format("ACCESS_DENIED"), NoPermission, "42501"),
        (DENIED.format("INVALID_ACCESS_KEY_ID"), NoPermission, "42501"),
        (DENIED.format("SIGNATURE_DOES_NOT_MATCH"), NoPermission, "42501"),
        (DENIED.format("UNKNOWN (HTTP status 403)"), NoPermission, "42501"),
        (DENIED.format("NO_SUCH_BUCKET"), FileMissing, "58P01"),
        (DENIED.format("NETWORK_CONNECTION"), InputOutput, "58030"),
        (DENIED.format("SLOW_DOWN"), InputOutput, "58030"),
        ("CANARY", InputOutput, "58030"),
    ],
)
def test_s3_errors_have_their_sqlstate_and_tell_no_more_than_the_code(
    text: str, kind: type[StoreError], sqlstate: str
) -> None:
    with pytest.raises(kind) as caught, translated("read file", "a"):
        raise OSError(text)
    assert caught.value.sqlstate == sqlstate
    assert "CANARY" not in str(caught.value)


def test_credentials_are_not_shown() -> None:
    assert "CANARY" not in repr(Credentials("key", "CANARY")) + str(Credentials("CANARY", "x"))


def test_an_address_shows_no_credentials_and_opens_with_them(bucket_address: str) -> None:
    files = open_files(f"{bucket_address}&AWS_ACCESS_KEY_ID=CANARY1&AWS_SECRET_ACCESS_KEY=CANARY2")
    assert "CANARY" not in files.address + repr(files) + repr(files.credentials)
    assert files.credentials == Credentials("CANARY1", "CANARY2")
    with files.create("a") as output:
        output.write(b"x")
    assert open_files(files.address, files.credentials).exists("a")


@pytest.mark.invariant("whole-files")
@pytest.mark.parametrize("size", [10, 12_000_000])
def test_an_upload_that_fails_on_its_way_leaves_nothing(
    bucket_address: str, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    files = open_files(bucket_address)
    output = files.create("d/a")
    output.write(bytes(size))

    def cut_off(source: io.BytesIO, target: io.BytesIO, length: int = 0) -> None:
        target.write(source.read(size // 2))
        raise OSError(5, "the spool is gone")

    monkeypatch.setattr(shutil, "copyfileobj", cut_off)
    with pytest.raises(InputOutput):
        output.close()
    assert _names(files) == []


@pytest.mark.invariant("whole-files")
def test_an_upload_of_which_the_store_kept_less_is_an_error(
    bucket_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = open_files(bucket_address)
    output = files.create("a")
    output.write(b"12345")
    monkeypatch.setattr(shutil, "copyfileobj", lambda source, target, length: target.write(source.read(3)))
    with pytest.raises(InputOutput, match="has not kept all of it"):
        output.close()
    assert _names(files) == []


def test_a_store_that_is_not_there_is_an_error(bucket_address: str) -> None:
    files = open_files("s3://bucket/a?AWS_ENDPOINT=http://127.0.0.1:1")
    with pytest.raises(InputOutput, match="NETWORK_CONNECTION"):
        files.exists("a")


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/a*",
        "s3://bucket/a?AWS_ENDPOINT=ftp://x",
        "s3://bucket/a?AWS_ENDPOINT=http://u:p@x",
        "s3://bucket/a?AWS_ENDPOINT=http://x/path",
        "s3://bucket/a?AWS_REGION=a.b",
        "s3://bucket/a?AWS_ACCESS_KEY_ID=x",
        "",
        "a\0b",
    ],
)
def test_what_is_no_place_is_refused(address: str) -> None:
    with pytest.raises(InvalidParameter):
        open_files(address)


def _names(files: Files) -> list[str]:
    return [entry.name for page in files.list() for entry in page]
