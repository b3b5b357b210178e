"""Errors of far stores: those that are retried, and those that are reported.

pyarrow tells failures of a request apart by text alone: ``AWS Error SLOW_DOWN during GetObject
operation``. From that text:

    busy, or not there      it is tried again, after a while that doubles, some twenty seconds long;
                            then 53000 if the store asks for fewer requests, else 08006
    who asks is unknown     28000
    who asks may not        42501
    no such bucket          58P01
    no such file            58P01, ``SegmentMissing``
    anything else           58030

Errors name the operation and the key, and never what it was signed with.

Tests: tests/arrangement/test_remote_errors.py.
"""

from __future__ import annotations

import random
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from reclock.arrangement.store import missing, storage_errors
from reclock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 6.4)
"""Seconds between tries, about."""

_AWS: Final = re.compile(r"AWS Error (\w+)(?: \(HTTP status (\d+)\))? during (\w+)")


class Reason(NamedTuple):
    """Why a request failed: a SQLSTATE, what to do, and whether it may pass."""

    code: str
    said: str
    hint: str
    passing: bool = False


_UNKNOWN: Final = Reason(
    "28000",
    "the credentials are not accepted",
    "give this machine credentials of the store: a role, AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY in the environment, or ~/.aws; executors need their own",
)
_FORBIDDEN: Final = Reason(
    "42501",
    "access is denied",
    "allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on the objects "
    "of the store, and s3:ListBucket on its bucket; or give this machine other credentials",
)
_NO_BUCKET: Final = Reason(
    "58P01", "there is no such bucket", "create the bucket, or correct the address of the store"
)
_BUSY: Final = Reason(
    "53000",
    "the store asks for fewer requests",
    "it is tried again later; ask for a higher rate of requests, or give executors larger caches",
    passing=True,
)
_AWAY: Final = Reason(
    "08006",
    "the store does not answer",
    "is it running, and reachable from this machine? it is tried again later",
    passing=True,
)
_ELSEWHERE: Final = Reason(
    "58030",
    "the bucket is in another region, or at another endpoint",
    "add ?region=… or &endpoint_override=host:port to the address of the store",
)

_BY_NAME: Final = {
    "INVALID_ACCESS_KEY_ID": _UNKNOWN,
    "INVALID_CLIENT_TOKEN_ID": _UNKNOWN,
    "INVALID_SIGNATURE": _UNKNOWN,
    "SIGNATURE_DOES_NOT_MATCH": _UNKNOWN,
    "MISSING_AUTHENTICATION_TOKEN": _UNKNOWN,
    "UNRECOGNIZED_CLIENT": _UNKNOWN,
    "EXPIRED_TOKEN": _UNKNOWN,
    "REQUEST_EXPIRED": _UNKNOWN,
    "ACCESS_DENIED": _FORBIDDEN,
    "NO_SUCH_BUCKET": _NO_BUCKET,
    "SLOW_DOWN": _BUSY,
    "THROTTLING": _BUSY,
    "SERVICE_UNAVAILABLE": _BUSY,
    "INTERNAL_FAILURE": _AWAY,
    "NETWORK_CONNECTION": _AWAY,
    "REQUEST_TIMEOUT": _AWAY,
    "NOT_INITIALIZED": _AWAY,
}
_BY_STATUS: Final = {
    "301": _ELSEWHERE,
    "307": _ELSEWHERE,
    "401": _UNKNOWN,
    "403": _FORBIDDEN,
    "429": _BUSY,
    "500": _AWAY,
    "502": _AWAY,
    "503": _BUSY,
    "504": _AWAY,
}


def reason_of(error: OSError) -> Reason | None:
    """Return why a request failed, if the error says so.

    >>> reason_of(OSError("AWS Error SLOW_DOWN during GetObject operation: slow down")).code
    '53000'
    """
    if isinstance(error, (ConnectionError, TimeoutError)):
        return _AWAY
    found = _AWS.search(str(error))
    if found is None:
        return None
    return _BY_NAME.get(found[1]) or _BY_STATUS.get(found[2] or "")


def patiently(doing: str, key: str, call: Callable[[], T]) -> T:
    """Return what a call gives; while the store is busy or away, call again.

    Every call must do all of its work again. Errors are those of reclock.
    """
    with remote_errors(doing, key):
        for pause in PAUSES:
            try:
                return call()
            except FileNotFoundError:
                raise
            except OSError as error:
                reason = reason_of(error)
                if reason is None or not reason.passing:
                    raise
            time.sleep(pause * random.uniform(0.5, 1.0))
        return call()


@contextmanager
def remote_errors(doing: str, key: str) -> Iterator[None]:
    """Turn an ``OSError`` of a request into the error that says what to do."""
    with storage_errors(doing, key):
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as cause:
            if "NO_SUCH_KEY" in str(cause) or "RESOURCE_NOT_FOUND" in str(cause):
                raise missing(key, cause) from cause
            reason = reason_of(cause)
            if reason is None:
                raise
            message = f"could not {doing} {key}: {reason.said}"
            raise StorageError(
                message, detail=str(cause), hint=reason.hint, code=reason.code
            ) from cause
