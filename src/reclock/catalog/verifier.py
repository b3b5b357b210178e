r"""The verifier of a password: enough to check one, not enough to know or to use it.

The text is PostgreSQL's: ``SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>``, so a
verifier that was made elsewhere (psql's ``\\password``) can be given in place of a password.

Tests: tests/catalog/test_roles.py.
"""

from __future__ import annotations

import binascii
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scramp import ScramException, ScramMechanism

from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from reclock.secret import Secret

MECHANISM: Final = "SCRAM-SHA-256"
ITERATIONS: Final = 4_096
SALT_BYTES: Final = 16
"""As in PostgreSQL, and in what psql makes: who asks for a salt learns nothing of its maker."""

_TEXT: Final = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([^$:]+)\$([^$:]+):([^$:]+)")


@dataclass(frozen=True, slots=True)
class Verifier:
    """What SCRAM needs to check a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __str__(self) -> str:
        salt, stored, server = (
            b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        return "Verifier(***)"

    def accepts(self, password: str) -> bool:
        """Return whether a password is the one; takes some milliseconds either way."""
        try:
            made = ScramMechanism(MECHANISM).make_auth_info(password, self.iterations, self.salt)
        except ScramException:
            return False
        return hmac.compare_digest(made[1], self.stored_key)


def make_verifier(password: Secret) -> Verifier:
    """Return what is kept of a password, or the verifier that was given in its place."""
    given = password.reveal()
    if (found := read_verifier(given)) is not None:
        return found
    if not given:
        message = "a password must not be empty"
        raise InvalidValue(message, hint="write PASSWORD NULL for a role without one")
    try:
        salt = secrets.token_bytes(SALT_BYTES)
        made = ScramMechanism(MECHANISM).make_auth_info(given, ITERATIONS, salt)
    except ScramException as cause:
        message = "the password has characters that cannot be used"
        raise InvalidValue(message, hint="use letters, digits and signs") from cause
    return Verifier(*made)


def read_verifier(text: str) -> Verifier | None:
    """Return the verifier that a text is; None if it is none."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    try:
        salt, stored, server = (b64decode(match[n], validate=True) for n in (2, 3, 4))
    except binascii.Error:
        return None
    if len(stored) != 32 or len(server) != 32 or not salt or int(match[1]) < 1:
        return None
    return Verifier(salt, stored, server, int(match[1]))
