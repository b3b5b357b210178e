"""SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's half: a password is checked, and never sent.

An unknown user gets a challenge all the same, against a verifier that no password fits, made of the
name and a secret of the process: an answer, its length and its time do not reveal which users there
are. Until the process ends the salt of a name stays the same, as that of a user does.

``scramp`` makes verifiers, and is the client in the tests, but cannot be the server here: it
refuses the empty user name that every libpq sends, as PostgreSQL takes the name of the startup
message. Hashes are the standard library's. Channel binding is not offered.

Tests: tests/server/protocol/test_startup.py.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from reclock.catalog.verifier import ITERATIONS, MECHANISM, SALT_BYTES, Verifier
from reclock.errors import ProtocolViolation, Rejected
from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.codec.message import frame, read

if TYPE_CHECKING:
    from reclock.server.protocol.wire import Wire

_OFFER: Final = f"{MECHANISM}\0\0".encode()


class Exchange:
    """One exchange: a first message, the challenge, the proof, and the server's own proof."""

    def __init__(self, verifier: Verifier, nonce: str | None = None) -> None:
        self._verifier = verifier
        self._nonce = nonce or secrets.token_urlsafe(18)
        self._header = ""
        self._bare = ""
        self._challenge = ""

    def challenge(self, first: str) -> str:
        """Return the challenge to a client's first message; ``ValueError`` if it is none."""
        binding, name, self._bare = first.split(",", 2)
        if binding not in {"n", "y"}:
            message = "channel binding was not offered"
            raise ValueError(message)
        if name:
            message = "a client cannot log in for another role"
            raise ValueError(message)
        self._header = f"{binding},,"
        theirs = _attribute(self._bare.split(","), 1, "r")
        if not theirs:
            raise ValueError(first)
        self._nonce = theirs + self._nonce
        salt = b64encode(self._verifier.salt).decode()
        self._challenge = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._challenge

    def proof(self, final: str) -> str | None:
        """Return the server's proof for a client's that is right; None if it is wrong."""
        without, _, proof = final.rpartition(",p=")
        parts = without.split(",")
        header = b64decode(_attribute(parts, 0, "c"), validate=True).decode()
        if header != self._header or _attribute(parts, 1, "r") != self._nonce:
            raise ValueError(final)
        said = f"{self._bare},{self._challenge},{without}".encode()
        signature = hmac.digest(self._verifier.stored_key, said, "sha256")
        given = b64decode(proof, validate=True)
        if len(given) != len(signature):
            raise ValueError(final)
        key = bytes(x ^ y for x, y in zip(given, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored_key):
            return None
        ours = hmac.digest(self._verifier.server_key, said, "sha256")
        return f"v={b64encode(ours).decode()}"


def _attribute(parts: list[str], at: int, letter: str) -> str:
    if at >= len(parts) or not parts[at].startswith(f"{letter}="):
        message = f"attribute {letter} is missing"
        raise ValueError(message)
    return parts[at][2:]


async def authenticate(wire: Wire, user: str, known: Verifier | None, pepper: bytes) -> None:
    """Ask for a password; ``Rejected`` (28P01) if it is not that of ``known``.

    ``pepper`` is a secret of this process, from which the verifiers of unknown names are made.
    """
    stranger = nobody(user, pepper)  # which takes its time for those who are known, too
    exchange = Exchange(stranger if known is None else known)
    await wire.send(frame(b.Authentication(b.SASL, _OFFER)))
    first = read(f.SaslInitial, await _reply(wire))
    if first.mechanism != MECHANISM or first.data is None:
        message = f'"{first.mechanism}" is no mechanism that was offered'
        raise ProtocolViolation(message, hint=f"use {MECHANISM}")
    try:
        challenge = exchange.challenge(first.data.decode()).encode()
        await wire.send(frame(b.Authentication(b.SASL_CONTINUE, challenge)))
        proof = exchange.proof((await _reply(wire)).decode())
    except (binascii.Error, UnicodeDecodeError, ValueError) as cause:
        message = "malformed SCRAM message"
        raise ProtocolViolation(message, detail=str(cause)) from cause
    if proof is None or known is None:
        raise wrong(user)
    await wire.send(frame(b.Authentication(b.SASL_FINAL, proof.encode())))


def wrong(user: str) -> Rejected:
    """Return the error for a name or a password that is wrong; it does not say which."""
    message = f'password authentication failed for user "{user}"'
    return Rejected(message, code="28P01", hint="check the name and the password")


async def _reply(wire: Wire) -> bytes:
    message = await wire.receive()
    if not isinstance(message, f.AuthenticationReply):
        text = f"expected SASL response, got {type(message).__name__}"
        raise ProtocolViolation(text)
    return message.data


def nobody(user: str, pepper: bytes) -> Verifier:
    """Return a verifier that no password fits: the same for a name until the process ends."""

    def made(what: bytes) -> bytes:
        return hmac.digest(pepper, what + user.encode(errors="replace"), "sha256")

    return Verifier(made(b"salt")[:SALT_BYTES], made(b"stored"), made(b"server"), ITERATIONS)
