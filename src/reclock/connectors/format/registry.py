"""A Confluent-compatible schema registry: schemas by their id.

A message begins with ``HEADER`` bytes: a zero, and the id of the schema it was written with.
A schema never changes under its id, so every process asks for it once.

======================================  =========================================
option                                  what it is
======================================  =========================================
``registry.basic.auth.user.info``       ``user:password``
``registry.bearer.auth.token``          a token
``registry.ssl.ca.location``            whom to trust, a file of certificates
``registry.ssl.certificate.location``   who we are, a file
``registry.ssl.key.location``           its key, a file
``registry.ssl.key.password``           the key's password
======================================  =========================================

These are the names of Confluent's clients. The first two and the last are secrets, shown
nowhere. A registry that does not answer is ``SourceUnavailable``: nothing is lost, try
again. An id that it does not know is a ``Fault`` of the record, and is asked for again with
the next batch. A schema that it does not take, such as one that is not compatible with the
one before it, is ``InvalidDefinition``.

Tests: tests/connectors/format/test_registry.py, on ``reclock.testing.schema_registry``.
"""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener

from reclock.connectors.format.avro_schema import writer_of
from reclock.connectors.format.decoder import Fault, shown
from reclock.errors import InvalidDefinition, InvalidValue, SourceUnavailable
from reclock.secret import Secret, scrub

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.connectors.format.avro_schema import Writer

HEADER: Final = 5
PREFIX: Final = "registry."
TIMEOUT: Final = 10.0
"""Seconds to wait for an answer."""

_OPTIONS: Final = {
    "basic.auth.user.info": True,
    "bearer.auth.token": True,
    "ssl.ca.location": False,
    "ssl.certificate.location": False,
    "ssl.key.location": False,
    "ssl.key.password": True,
}
"""Which there are, and whether their values are secret."""

_MISSING: Final = frozenset({40401, 40402, 40403})
"""A subject, a version, a schema that the registry does not have."""

_NOT_TAKEN: Final = frozenset({409, 422})
"""A schema that is not compatible with the one before, or is none."""

_DOWN: Final = (
    "see that the address is right and that the registry runs; what exists already is tried again "
    "by itself"
)
_REFUSED: Final = {401: "28000", 403: "42501"}


@dataclass(frozen=True, slots=True)
class Registry:
    """Where schemas are, and how to be let in.

    >>> Registry.of("http://localhost:8081", {"registry.bearer.auth.token": "t0k3n"}).options
    (('bearer.auth.token', Secret(***)),)
    """

    url: str
    options: tuple[tuple[str, str | Secret], ...] = ()

    @classmethod
    def of(cls, url: str, options: Mapping[str, str]) -> Self:
        """Return the registry that the ``registry.*`` ones of ``options`` describe."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            message = f'"{url}" is not the address of a schema registry'
            raise InvalidValue(message, hint="write it as http://host:8081")
        if parts.password is not None:
            message = "the address of a schema registry must not hold a password"
            raise InvalidValue(message, hint=f"use the option {PREFIX}basic.auth.user.info")
        given: list[tuple[str, str | Secret]] = []
        for name, value in sorted(options.items()):
            if not name.startswith(PREFIX):
                continue
            bare = name.removeprefix(PREFIX)
            if bare not in _OPTIONS:
                message = f'there is no option "{name}"'
                hint = "there are " + ", ".join(PREFIX + option for option in _OPTIONS)
                raise InvalidValue(message, hint=hint)
            given.append((bare, Secret(value) if _OPTIONS[bare] else value))
        return cls(url.rstrip("/"), tuple(given))

    def writer(self, number: int) -> Writer:
        """Return the schema of an id; ``Fault`` if there is none, or no usable one."""
        return _writer(self, number)

    def register(self, subject: str, schema: str) -> int:
        """Return the id of an Avro schema, the latest of ``subject`` from now on."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        try:
            return int(_answer(self, path, "id", {"schema": schema})["id"])
        except _Missing:
            raise _unavailable(self, "does not answer", f"it has no place for {subject}") from None

    def find(self, subject: str, schema: str) -> int | None:
        """Return the id of an Avro schema that ``subject`` has; None if it has no such one."""
        path = f"/subjects/{quote(subject, safe='')}"
        try:
            return int(_answer(self, path, "id", {"schema": schema})["id"])
        except _Missing:
            return None


@lru_cache(maxsize=1024)
def _writer(registry: Registry, number: int) -> Writer:
    found = _asked(registry, f"/schemas/ids/{number}")
    if found is None:
        message = f"schema {number} is not in the registry"
        raise Fault(message)
    if found.get("schemaType", "AVRO") != "AVRO":
        message = f"schema {number} is not an Avro schema: {shown(found['schemaType'])}"
        raise Fault(message)
    try:
        return writer_of(found["schema"], _references(registry, found, {}))
    except Fault as fault:
        message = f"schema {number}: {fault}"
        raise Fault(message) from fault


def _references(
    registry: Registry, found: Mapping[str, Any], seen: dict[tuple[str, int], None]
) -> list[str]:
    """Return the schemas that one refers to, each after those that it refers to itself."""
    schemas: list[str] = []
    for reference in found.get("references") or ():
        subject, version = key = (str(reference["subject"]), int(reference["version"]))
        if key in seen:
            continue
        seen[key] = None
        other = _asked(registry, f"/subjects/{quote(subject, safe='')}/versions/{version}")
        if other is None:
            message = f'it refers to version {version} of "{shown(subject)}", which is missing'
            raise Fault(message)
        schemas += [*_references(registry, other, seen), other["schema"]]
    return schemas


def _asked(registry: Registry, path: str) -> dict[str, Any] | None:
    """Return what the registry answers; None if it has no such thing."""
    try:
        answer = _answer(registry, path, "schema")
    except _Missing:
        return None
    if not isinstance(answer["schema"], str):
        raise _unavailable(registry, "does not answer", "there is no schema in its answer")
    return answer


class _Missing(Exception):
    """The registry has no such thing."""


def _answer(
    registry: Registry, path: str, wanted: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the answer, which has ``wanted``, to a question, or to a ``body`` that is posted."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(registry.url + path, data, headers=_headers(registry, posts=data is not None))
    try:
        with _opener(registry).open(request, timeout=TIMEOUT) as response:
            answer = dict(json.load(response))
    except HTTPError as error:
        with error:
            _check_missing(registry, error)
        raise _Missing from None
    except (OSError, HTTPException, ValueError, TypeError) as error:
        raise _unavailable(registry, "does not answer", getattr(error, "reason", error)) from None
    if wanted not in answer:
        raise _unavailable(registry, "does not answer", f"there is no {wanted} in its answer")
    return answer


def _check_missing(registry: Registry, error: HTTPError) -> None:
    """Raise what the registry says, unless it is that it has no such thing."""
    try:
        said = dict(json.load(error))
    except (OSError, HTTPException, ValueError, TypeError):
        said = {}
    if error.code == 404 and said.get("error_code") in _MISSING:
        return
    if error.code in _NOT_TAKEN:
        message = f"the schema registry at {registry.url} does not take a schema"
        hint = "let the topic have a new name, or lower the compatibility of its subjects"
        raise InvalidDefinition(message, detail=str(said.get("message")), hint=hint) from None
    code = _REFUSED.get(error.code)
    does = "does not answer" if code is None else "refuses us"
    raise _unavailable(registry, does, said.get("message") or f"HTTP {error.code}", code) from None


def _unavailable(
    registry: Registry, does: str, said: object, code: str | None = None
) -> SourceUnavailable:
    secrets = [value for _, value in registry.options if isinstance(value, Secret)]
    hint = _DOWN if code is None else f"look at the {PREFIX}* options"
    message = f"the schema registry at {registry.url} {does}"
    return SourceUnavailable(message, detail=scrub(str(said), secrets), hint=hint, code=code)


def _headers(registry: Registry, *, posts: bool) -> dict[str, str]:
    given = _revealed(registry)
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if posts:
        headers["Content-Type"] = "application/vnd.schemaregistry.v1+json"
    if "basic.auth.user.info" in given:
        login = b64encode(given["basic.auth.user.info"].encode()).decode()
        headers["Authorization"] = f"Basic {login}"
    elif "bearer.auth.token" in given:
        headers["Authorization"] = f"Bearer {given['bearer.auth.token']}"
    return headers


def _opener(registry: Registry) -> OpenerDirector:
    given = _revealed(registry)
    try:
        context = ssl.create_default_context(cafile=given.get("ssl.ca.location"))
        if "ssl.certificate.location" in given:
            context.load_cert_chain(
                given["ssl.certificate.location"],
                given.get("ssl.key.location"),
                given.get("ssl.key.password", ""),
            )
    except (OSError, ValueError) as error:
        message = "the certificates of a schema registry cannot be used"
        raise InvalidValue(message, detail=str(error)) from None
    return build_opener(HTTPSHandler(context=context))


def _revealed(registry: Registry) -> dict[str, str]:
    """Return the options with their secrets: for the request alone."""
    return {n: v.reveal() if isinstance(v, Secret) else v for n, v in registry.options}
