"""From the address of a store to the file system it is on.

``s3://bucket/prefix?region=…``: options follow the question mark, and take the place of what the
environment says (``AWS_REGION``, ``AWS_ENDPOINT_URL``). They travel with the store to tasks, so
that executors need not be told again. Credentials do not: an address that has some is refused, for
addresses are logged, shown and sent; each machine has its own (a role, the environment,
``~/.aws``). Other addresses are pyarrow's: ``gs://``, ``abfs://``, ``hdfs://``, ``file://``.

Tests: tests/arrangement/test_address.py.
"""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs

from reclock.errors import InvalidValue

_TEXTS: Final = ("region", "endpoint_override", "scheme", "role_arn", "session_name",
                 "external_id", "tls_ca_file_path")  # fmt: skip
_FLAGS: Final = ("anonymous", "force_virtual_addressing")
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}
_PATIENCE: Final = {"connect_timeout": 5.0, "request_timeout": 60.0}


def filesystem_of(address: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of an address, and the path in it."""
    try:
        parts = urlsplit(address)
        has_secret = parts.password is not None or (parts.scheme == "s3" and "@" in parts.netloc)
    except ValueError as cause:
        raise _none(address, str(cause)) from cause
    if has_secret:
        message = "the address of a store may not have credentials"
        hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or use a role"
        raise InvalidValue(message, detail="addresses are logged, and sent to tasks", hint=hint)
    try:
        if parts.scheme == "s3":
            return _s3(address)
        filesystem, path = fs.FileSystem.from_uri(address)
    except (pa.ArrowException, ImportError, OSError, ValueError) as cause:
        raise _none(address, str(cause)) from cause
    return filesystem, path


def _s3(address: str) -> tuple[fs.FileSystem, str]:
    parts = urlsplit(address)
    bucket = parts.netloc
    if not bucket:
        raise _none(address, "it names no bucket")
    options = _options(address, parts.query)
    if "endpoint_override" not in options:
        elsewhere = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if elsewhere:
            scheme, _, host = elsewhere.rpartition("://")
            options["endpoint_override"] = host.rstrip("/")
            options.setdefault("scheme", scheme or "https")
    if "region" not in options:
        known = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if known:
            options["region"] = known
        elif "endpoint_override" in options:
            options["region"] = "us-east-1"
        else:
            options["region"] = fs.resolve_s3_region(bucket)
    made = fs.S3FileSystem(allow_delayed_open=True, **_PATIENCE, **options)
    return made, f"{bucket}/{parts.path.strip('/')}".rstrip("/")


def _options(address: str, query: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)):
        if name in _TEXTS:
            made[name] = value
        elif name in _FLAGS and value.lower() in _TRUTH:
            made[name] = _TRUTH[value.lower()]
        else:
            raise _none(address, f'option "{name}" is not known, or not "{value}"')
    return made


def _none(address: str, detail: str) -> InvalidValue:
    message = f'there is no store at "{address}"'
    hint = "write a directory, or an address that pyarrow knows, such as s3://bucket/prefix"
    return InvalidValue(message, detail=detail, hint=hint)
