"""Authentication: the same roles and passwords as at the PostgreSQL port.

A caller shows one of these:

- a cookie, which ``/api/login`` set: HttpOnly, SameSite=Strict, and Secure with TLS;
- ``Authorization: Bearer`` with the token that ``/api/login`` gave to a program;
- ``Authorization: Basic`` with a role and its password, as Prometheus sends it;
- nothing, from this machine, if the server trusts it. Then the Host must be this machine's too:
  a page of another site whose name was made to mean this machine is not let in.

A page of another site gets nothing at all, whatever it shows: a request whose Origin is not the
server's own, or that the browser says comes from another site, is refused. Sessions are in memory,
end after ``LIFETIME_SECONDS``, with the password, and with the process; only a hash of a token is
kept. Failed log-ins are slowed down by address (``protocol.throttle``), as for the other port.

Tests: tests/server/http/test_door.py.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from base64 import b64decode
from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

from reclock.clock import SystemClock
from reclock.errors import Forbidden, Rejected
from reclock.server.protocol.scram import nobody, wrong
from reclock.server.protocol.throttle import Throttle

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from reclock.catalog.roles import Role
    from reclock.catalog.verifier import Verifier
    from reclock.clock import Clock
    from reclock.session.database import Database

LIFETIME_SECONDS: Final = 12 * 3_600
SESSIONS: Final = 10_000
"""So many may be logged in at once; of more, the oldest is logged out."""

COOKIE: Final = "reclock_session"
SAFE_COOKIE: Final = f"__Host-{COOKIE}"
"""What it is called with TLS: browsers take it from this host only."""

_PASSED_ON: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""What proxies write: the request comes from somewhere else, whatever its address."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; a ``role`` of None is trusted, and may do everything."""

    role: str | None
    verifier: Verifier | None = None
    """What the role's password was checked with; another one means another password."""
    session: bytes | None = None
    """The session that was shown, if one was."""


@dataclass(frozen=True, slots=True)
class _Session:
    role: str | None
    verifier: Verifier | None
    until: float


class Door:
    """Decides who comes in."""

    def __init__(
        self, db: Database, *, trusts_local: bool, encrypts: bool, clock: Clock | None = None
    ) -> None:
        self._db = db
        self._trusts_local = trusts_local
        self._throttle = Throttle(clock or SystemClock())
        self._pepper = secrets.token_bytes(32)
        self._sessions: OrderedDict[bytes, _Session] = OrderedDict()
        self._proved: OrderedDict[bytes, Verifier] = OrderedDict()
        self.cookie: Final = SAFE_COOKIE if encrypts else COOKIE
        self.encrypts: Final = encrypts

    # Where a request comes from.

    def check_site(self, request: HTTPConnection) -> None:
        """Refuse a request that a page of another site has made."""
        headers = request.headers
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, headers.get("host", "")):
            raise _other_site(origin)
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
            raise _other_site(headers["sec-fetch-site"])

    def _is_own(self, origin: str, host: str) -> bool:
        """Return whether a page is the server's: a proxy may have put TLS in front of it."""
        scheme, _, place = origin.partition("://")
        return place == host and (scheme == "https" or (scheme == "http" and not self.encrypts))

    def trusts(self, request: HTTPConnection) -> bool:
        """Return whether a request needs no password; what a proxy passes on does."""
        if any(name in request.headers for name in _PASSED_ON):
            return False
        host = (request.headers.get("host") or "").strip()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        return (
            self._trusts_local
            and is_local(address_of(request))
            and (name == "localhost" or is_local(name))
        )

    # Who it is.

    def known(self, request: HTTPConnection) -> Caller | None:
        """Return who asks, or refuse; None: there is a password to be checked."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            return self._proven(*_credentials(given))
        return self.caller(request)

    def caller(self, request: HTTPConnection) -> Caller:
        """Return who asks, or refuse; a password takes a moment to check."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "bearer":
                return self._known(given.strip())
            case "basic":
                return self._check(*_credentials(given), address_of(request))
        if (token := request.cookies.get(self.cookie)) is not None:
            try:
                return self._known(token)
            except Rejected:
                if not self.trusts(request):
                    raise
        if self.trusts(request):
            return Caller(None)
        message = "who are you?"
        raise Rejected(message, hint="log in, or send Authorization: Basic or Bearer")

    def is_safe(self, request: HTTPConnection) -> bool:
        """Return whether the browser is asked over TLS, by this server or a proxy before it."""
        return self.encrypts or request.headers.get("origin", "").startswith("https://")

    def log_in(self, request: HTTPConnection, user: str, password: str) -> str:
        """Return the token of a new session."""
        role = self._db.roles.find(user)
        if self.trusts(request) and not password:
            if role is not None and not role.login:
                message = f'role "{user}" is not permitted to log in'
                raise Rejected(message, hint=f"an admin can ALTER ROLE {user} LOGIN")
            caller = Caller(None if role is None else user)
        else:
            caller = self._check(user, password, address_of(request))
        token = secrets.token_urlsafe(32)
        verifier = None if role is None or caller.role is None else role.verifier
        self._sessions[_hash(token)] = _Session(
            caller.role, verifier, monotonic() + LIFETIME_SECONDS
        )
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return token

    def log_out(self, token: str) -> None:
        """End a session."""
        self._sessions.pop(_hash(token), None)

    def check_still(self, caller: Caller) -> None:
        """Refuse a session whose log-in would fail now."""
        if caller.session is not None and self._session(caller.session) is None:
            raise _ended()
        if not self._stands(caller):
            raise _ended()

    def _known(self, token: str) -> Caller:
        key = _hash(token)
        found = self._session(key)
        caller = None if found is None else Caller(found.role, found.verifier, key)
        if caller is None or not self._stands(caller):
            self._sessions.pop(key, None)
            raise _ended()
        return caller

    def _session(self, key: bytes) -> _Session | None:
        found = self._sessions.get(key)
        return found if found is not None and found.until > monotonic() else None

    def _stands(self, caller: Caller) -> bool:
        """Return whether a role may still log in, with the password that it had."""
        if caller.role is None:
            return True
        role = self._db.roles.find(caller.role)
        return role is not None and role.login and role.verifier == caller.verifier

    def _proven(self, user: str, password: str) -> Caller | None:
        """Return who shows a password that was right a moment ago, and still is."""
        known = self._verifier(user)
        if known is not None and self._proved.get(self._shown(user, password)) == known:
            return Caller(user, known)
        return None

    def _verifier(self, user: str) -> Verifier | None:
        role = self._db.roles.find(user)
        return None if role is None or not role.login else role.verifier

    def _shown(self, user: str, password: str) -> bytes:
        return hmac.digest(self._pepper, f"{user}\0{password}".encode(), "sha256")

    def _check(self, user: str, password: str, address: str) -> Caller:
        """Check a password; one that was right a moment ago is not computed again."""
        if (proven := self._proven(user, password)) is not None:
            return proven
        known = self._verifier(user)
        self._throttle.check(address)
        verifier = nobody(user, self._pepper) if known is None else known
        if not verifier.accepts(password) or known is None:
            self._throttle.failed(address, user)
            raise wrong(user)
        self._throttle.succeeded(address, user)
        self._proved[self._shown(user, password)] = known
        while len(self._proved) > SESSIONS:
            self._proved.popitem(last=False)
        return Caller(user, known)


def _credentials(given: str) -> tuple[str, str]:
    """Return the role and the password of ``Authorization: Basic``."""
    try:
        user, colon, password = b64decode(given, validate=True).decode().partition(":")
    except ValueError:
        colon = user = password = ""
    if not colon:
        message = "malformed credentials"
        raise Rejected(message, hint="send Authorization: Basic base64(role:password)")
    return user, password


def is_superuser(db: Database, caller: Caller) -> bool:
    """Return whether a client may do everything."""
    role: Role | None = None if caller.role is None else db.roles.find(caller.role)
    return caller.role is None or (role is not None and role.superuser)


def address_of(request: HTTPConnection) -> str:
    """Return where a request comes from."""
    return "" if request.client is None else request.client.host


def is_local(host: str) -> bool:
    """Return whether an address is of this machine.

    >>> is_local("127.0.0.1"), is_local("::1"), is_local("10.0.0.1"), is_local("evil.example")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _ended() -> Rejected:
    message = "the session has ended"
    return Rejected(message, hint="log in again")


def _other_site(site: str) -> Forbidden:
    message = "a page of another site cannot ask"
    return Forbidden(message, detail=f"the request comes from {site[:100]}")
