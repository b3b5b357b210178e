from __future__ import annotations

import pickle

import pytest
from pyarrow import fs

from reclock.arrangement.address import filesystem_of
from reclock.errors import InvalidValue


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a-key-of-this-machine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-this-machine")


def test_options_travel_and_secrets_do_not():
    address = "s3://bucket/a/b/?scheme=http&endpoint_override=host:9000&region=xx&anonymous=false"
    made, path = filesystem_of(address)
    assert path == "bucket/a/b"
    assert made.region == "xx"
    sent = pickle.dumps(made)
    assert b"host:9000" in sent
    assert b"of-this-machine" not in sent
    assert pickle.loads(sent) == made


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_what_the_environment_says_travels(monkeypatch, name):
    monkeypatch.setenv(name, "http://store:9000/")
    made, path = filesystem_of("s3://bucket")
    monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_REGION", "another")
    assert path == "bucket"
    assert (made.region, b"store:9000" in pickle.dumps(made)) == ("eu-west-1", True)
    expected, _ = filesystem_of(
        "s3://bucket?endpoint_override=store:9000&scheme=http&region=eu-west-1"
    )
    assert pickle.loads(pickle.dumps(made)) == expected


def test_other_file_systems_are_pyarrow_s(tmp_path):
    made, path = filesystem_of(f"file://{tmp_path}")
    assert isinstance(made, fs.LocalFileSystem)
    assert path == str(tmp_path)


@pytest.mark.parametrize(
    "address", ["s3://key:hush@bucket/x", "s3://hush@bucket", "abfs://:hush@account/x"]
)
def test_an_address_with_credentials_is_refused_and_not_shown(address):
    with pytest.raises(InvalidValue, match="may not have credentials") as error:
        filesystem_of(address)
    assert "hush" not in str(error.value)
    assert "AWS_ACCESS_KEY_ID" in error.value.hint


@pytest.mark.parametrize(
    "address",
    ["s3://", "s3://bucket?nothing=1", "s3://bucket?anonymous=perhaps", "s4://b", "s3://[x"],
)
def test_an_address_that_is_none(address):
    with pytest.raises(InvalidValue, match="there is no store at") as error:
        filesystem_of(address)
    assert error.value.detail
