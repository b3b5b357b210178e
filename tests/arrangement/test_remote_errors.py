from __future__ import annotations

import pytest

from reclock.arrangement import remote_errors
from reclock.arrangement.remote_errors import patiently
from reclock.errors import SegmentMissing, StorageError, StorageFull


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    slept = []
    monkeypatch.setattr(remote_errors.time, "sleep", slept.append)
    return slept


def failing(times, error):
    left = [error] * times

    def call():
        if left:
            raise left.pop()
        return "done"

    return call


def aws(name):
    return OSError(f"When reading: AWS Error {name} during GetObject operation: because")


@pytest.mark.parametrize(
    "error",
    [
        aws("SLOW_DOWN"), aws("NETWORK_CONNECTION"), aws("UNKNOWN (HTTP status 503)"),
        ConnectionResetError("by peer"), TimeoutError("long"),
    ],
)  # fmt: skip
def test_what_may_pass_is_tried_again_and_waits_longer(error, pauses):
    assert patiently("read", "b/k", failing(4, error)) == "done"
    assert len(pauses) == 4
    assert pauses[0] <= 0.1 < pauses[3]


@pytest.mark.parametrize(
    ("error", "code", "tries"),
    [
        (aws("SLOW_DOWN"), "53000", 9),
        (aws("SERVICE_UNAVAILABLE"), "53000", 9),
        (aws("NETWORK_CONNECTION"), "08006", 9),
        (aws("ACCESS_DENIED"), "42501", 1),
        (aws("UNKNOWN (HTTP status 403)"), "42501", 1),
        (aws("EXPIRED_TOKEN"), "28000", 1),
        (aws("SIGNATURE_DOES_NOT_MATCH"), "28000", 1),
        (aws("NO_SUCH_BUCKET"), "58P01", 1),
        (aws("UNKNOWN (HTTP status 301)"), "58030", 1),
        (aws("SOMETHING_NEW"), "58030", 1),
        (OSError(5, "Input/output error"), "58030", 1),
    ],
)
def test_what_does_not_pass_says_why(error, code, tries, pauses):
    with pytest.raises(StorageError) as raised:
        patiently("read", "bucket/key", failing(99, error))
    assert raised.value.code == code
    assert "bucket/key" in raised.value.message
    assert str(error) in raised.value.detail
    assert len(pauses) == tries - 1


def test_missing_files_and_full_disks_are_what_they_are_elsewhere():
    for error in (FileNotFoundError("k"), aws("NO_SUCH_KEY")):
        with pytest.raises(SegmentMissing, match="b/k is missing"):
            patiently("read", "b/k", failing(1, error))
    with pytest.raises(StorageFull):
        patiently("write", "b/k", failing(1, OSError(28, "No space left on device")))
