"""The beginning of a connection: encryption, who it is, and whether they may come in.

1. A client may ask for TLS (granted if there is a certificate) or for GSSAPI (refused), or send a
   cancel request, which is passed on and never answered. Bytes that came before TLS began are
   refused: an attacker may have sent them.
2. Its startup message names a user. Minor versions after 3.0 and options that are not known are
   named back to it, and it decides.
3. A role that may log in proves its password by SCRAM. Without a password only clients on this
   machine come in, and only if the server was told to trust them. A server with a certificate asks
   of those on other machines that they use it.
4. The client is told of the settings that it cares about, and of the key to cancel with.

Tests: tests/server/protocol/test_startup.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from reclock.catalog.client_settings import CLIENT_SETTINGS
from reclock.errors import Error, InvalidValue, ProtocolViolation, Rejected
from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.codec.message import frame
from reclock.server.protocol.report import notice
from reclock.server.protocol.scram import authenticate, wrong
from reclock.server.signpost import USER

if TYPE_CHECKING:
    from reclock.catalog.roles import Roles
    from reclock.catalog.verifier import Verifier
    from reclock.server.codec.message import Message
    from reclock.server.protocol.throttle import Throttle
    from reclock.server.protocol.wire import Wire
    from reclock.session.session import Session

_YES: Final = b"S"
_NO: Final = b"N"
_OURS: Final = ("user", "database", "options", "replication")


class Door(Protocol):
    """What a server decides about who comes in."""

    trusts_local: bool
    """Whether clients on this machine need no password."""
    owner: Verifier | None
    """Who the owner of the state is checked by; None: he logs in as others do."""
    pepper: bytes
    throttle: Throttle

    @property
    def roles(self) -> Roles:
        """Who there is."""
        ...

    def session(self, role: str | None, pid: int) -> Session:
        """Begin a session."""
        ...

    def cancel(self, process: int, key: bytes) -> None:
        """Cancel what the connection with that key is doing."""
        ...

    def failed(self, user: str, address: str, error: Error) -> None:
        """Be told of a log-in that failed."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """What a connection is cancelled with."""

    process: int
    secret: bytes


async def greet(wire: Wire, door: Door, key: Key) -> Session | None:
    """Let a client in; None if it only came to cancel something."""
    message = await _first(wire)
    if isinstance(message, f.CancelRequest):
        door.cancel(message.process, message.key)
        return None
    assert isinstance(message, f.Startup)
    parameters = dict(message.parameters)
    if unknown := _negotiated(message, parameters):
        await wire.send(frame(unknown))
    user = parameters.get("user", "")
    try:
        role = await _admit(wire, door, user)
    except Rejected as error:
        door.failed(user, wire.address, error)
        raise
    wire.admitted()
    session = door.session(role, key.process)
    try:
        await wire.send(_welcome(session, parameters, key))
    except BaseException:
        session.close()
        raise
    return session


async def _first(wire: Wire) -> Message:
    """Return the startup message, or a cancel request, in TLS if that was asked for."""
    for _ in range(3):
        message = await wire.first()
        match message:
            case f.SslRequest():
                if wire.can_encrypt and not wire.is_encrypted:
                    await wire.send(_YES)
                    await wire.encrypt()
                else:
                    await wire.send(_NO)
            case f.GssEncRequest():
                await wire.send(_NO)
            case _:
                return message
    text = "too many requests before the startup message"
    raise ProtocolViolation(text)


def _negotiated(
    message: f.Startup, parameters: dict[str, str]
) -> b.NegotiateProtocolVersion | None:
    """Take out options of the protocol, which are not known; say so, if there are any."""
    options = tuple(name for name in parameters if name.startswith("_pq_."))
    for name in options:
        del parameters[name]
    if options or message.version != f.PROTOCOL_3:
        return b.NegotiateProtocolVersion(f.PROTOCOL_3, options)
    return None


async def _admit(wire: Wire, door: Door, user: str) -> str | None:
    """Return the role of a client; None is a trusted client, which may do everything."""
    if not user:
        message = "no user name specified in startup packet"
        raise Rejected(message, hint="give a user name")
    role = door.roles.find(user)
    if role is None and user == USER and door.owner is not None:
        door.throttle.check(wire.address)
        try:
            await authenticate(wire, user, door.owner, door.pepper)
        except Rejected:
            door.throttle.failed(wire.address, user)
            raise
        return None
    if door.trusts_local and wire.is_local:
        if role is None:
            return None
        if not role.login:
            raise _no_login(user)
        return user
    if wire.can_encrypt and not wire.is_encrypted and not wire.is_local:
        message = "connections from other machines must use TLS"
        raise Rejected(message, hint="connect with sslmode=require")
    door.throttle.check(wire.address)
    verifier = None if role is None or not role.login else role.verifier
    try:
        await authenticate(wire, user, verifier, door.pepper)
    except Rejected:
        door.throttle.failed(wire.address, user)
        raise
    if role is None:
        raise wrong(user)
    door.throttle.succeeded(wire.address, user)
    return user


def _no_login(user: str) -> Rejected:
    message = f'role "{user}" is not permitted to log in'
    return Rejected(message, hint=f"an admin can ALTER ROLE {user} LOGIN")


def _welcome(session: Session, parameters: dict[str, str], key: Key) -> bytes:
    """Return what a client is told when it is in; what it asked for in vain is a notice."""
    told: list[Message] = [b.Authentication(b.AUTHENTICATED)]
    given = {n: v for n, v in parameters.items() if n not in _OURS}
    try:
        given |= options_of(parameters.get("options", ""))
    except InvalidValue as error:
        told.append(notice(error.message, hint=error.hint))
    for name, value in given.items():
        try:
            session.set(name.lower(), value, local=False)
        except Error as error:
            text = f'"{name}" is not set to "{value}": {error.message}'
            told.append(notice(text, hint=error.hint))
    session.settings.start()
    told += [b.ParameterStatus(name, value) for name, value in reported(session).items()]
    told.append(b.BackendKeyData(key.process, key.secret))
    return b"".join(map(frame, told))


def options_of(text: str) -> dict[str, str]:
    r"""Return the settings of the startup parameter ``options``.

    >>> options_of(r"-c statement_timeout=5s --application-name=my\ app -csearch_path=public")
    {'statement_timeout': '5s', 'application_name': 'my app', 'search_path': 'public'}
    """
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|[^\s\\])+", text)]
    found = {}
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word += words.pop(0)
        name, is_given, value = word[2:].partition("=")
        if not is_given or word[:2] not in {"-c", "--"}:
            message = f'"{word}" is not an option'
            raise InvalidValue(message, hint="write options as -c name=value")
        found[name.replace("-", "_")] = value
    return found


def reported(session: Session) -> dict[str, str]:
    """Return the settings whose values clients are told, by the names they know."""
    settings = session.settings
    found = {
        setting.reported: settings.get(name)
        for name, setting in CLIENT_SETTINGS.items()
        if setting.reported is not None
    }
    return {
        **found,
        "is_superuser": "on" if session.is_superuser else "off",
        "session_authorization": session.role or "",
    }
