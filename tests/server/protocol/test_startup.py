"""Who comes in, and how: TLS, cancel requests, SCRAM, trust, limits."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from scramp import ScramClient

from reclock import ManualClock
from reclock.errors import Error, ProtocolViolation, Rejected
from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.codec.message import write
from reclock.server.protocol import scram as module
from reclock.server.protocol.startup import Key, greet
from reclock.server.protocol.throttle import ALLOWED, LONGEST_MS, Throttle
from reclock.server.protocol.wire import Disconnected

from ..conftest import Script, finish  # noqa: TID252 - the fixture's own class

if TYPE_CHECKING:
    from reclock.catalog.roles import Roles
    from reclock.catalog.verifier import Verifier
    from reclock.server.codec.message import Message
    from reclock.session.database import Database
    from reclock.session.session import Session

KEY = Key(7, b"key!")


@dataclass
class Doorkeeper:
    db: Database
    trusts_local: bool = False
    pepper: bytes = b"pepper"
    clock: ManualClock = field(default_factory=lambda: ManualClock(0))
    cancelled: list[tuple[int, bytes]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    owner: Verifier | None = None

    def __post_init__(self) -> None:
        self.throttle = Throttle(self.clock)

    @property
    def roles(self) -> Roles:
        return self.db.roles

    def session(self, role: str | None, pid: int) -> Session:
        return self.db.session(role)

    def cancel(self, process: int, key: bytes) -> None:
        self.cancelled.append((process, key))

    def failed(self, user: str, address: str, error: Error) -> None:
        self.failures.append(f"{user}@{address}: {error.code}")


def startup(**parameters: str) -> f.Startup:
    return f.Startup(3 << 16, tuple(parameters.items()))


def scram(user: str, password: str) -> list[Any]:
    """Return what a client says that knows a password: steps that look at what it heard."""
    client = ScramClient(["SCRAM-SHA-256"], user, password)

    def asked(script: Script, kind: int) -> str:
        message = script.said[-1]
        assert isinstance(message, b.Authentication)
        assert message.kind == kind
        return message.data.decode()

    def first(script: Script) -> Message:
        assert asked(script, b.SASL) == "SCRAM-SHA-256\0\0"
        data = client.get_client_first().encode()
        return f.AuthenticationReply(write(f.SaslInitial("SCRAM-SHA-256", data)))

    def final(script: Script) -> Message:
        client.set_server_first(asked(script, b.SASL_CONTINUE))
        return f.AuthenticationReply(client.get_client_final().encode())

    return [first, final, client]


@pytest.fixture(scope="module")
def door(db: Database) -> Doorkeeper:
    db.execute(
        "CREATE USER joe PASSWORD 'secret'; CREATE USER bare; CREATE ROLE group_ PASSWORD 'x'"
    )
    return Doorkeeper(db)


def test_a_password_is_proved_by_both(door: Doorkeeper) -> None:
    first, final, client = scram("joe", "secret")
    script = Script(startup(user="joe"), first, final)
    session = finish(greet(script, door, KEY))
    assert session.role == "joe"
    answers = [m for m in script.said if isinstance(m, b.Authentication)]
    client.set_server_final(answers[2].data.decode())
    assert answers[3].kind == b.AUTHENTICATED
    assert script.said[-1] == b.BackendKeyData(7, b"key!")
    told = {m.name: m.value for m in script.said if isinstance(m, b.ParameterStatus)}
    assert told["server_encoding"] == told["client_encoding"] == "UTF8"
    assert told["TimeZone"] == "UTC"
    assert told["is_superuser"] == "off"
    assert told["session_authorization"] == "joe"


@pytest.mark.parametrize(
    ("user", "password"),
    [("joe", "wrong"), ("nobody", "secret"), ("bare", "secret"), ("group_", "x")],
)
def test_what_is_wrong_is_not_said(door: Doorkeeper, user: str, password: str) -> None:
    first, final, _ = scram(user, password)
    script = Script(startup(user=user), first, final)
    with pytest.raises(Rejected) as caught:
        finish(greet(script, door, KEY))
    assert caught.value.code == "28P01"
    assert [m.letter for m in script.said] == ["R", "R"]
    assert door.failures[-1] == f"{user}@10.0.0.1: 28P01"
    door.throttle.succeeded("10.0.0.1", user)


def test_who_is_not_known_is_asked_the_same_every_time(door: Doorkeeper) -> None:
    def challenged(user: str) -> list[bytes]:
        first, _, _ = scram(user, "x")
        script = Script(startup(user=user), first)
        with pytest.raises(Disconnected):
            finish(greet(script, door, KEY))
        challenge = script.said[-1]
        assert isinstance(challenge, b.Authentication)
        return challenge.data.split(b",")

    users = ("joe", "bare", "group_", "ghost", "other")
    asked = {user: challenged(user) for user in users}
    assert len({parts[1] for parts in asked.values()}) == len(users), "each has a salt of its own"
    for user, parts in asked.items():
        assert challenged(user)[1:] == parts[1:], "the same salt, and as many iterations"
    assert len({(tuple(map(len, parts)), parts[2]) for parts in asked.values()}) == 1


def test_the_same_work_is_done_for_every_name(
    door: Doorkeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []
    real = hmac.digest

    def counted(key: bytes, message: bytes, digest: str) -> bytes:
        hashed.append(len(message))
        return real(key, message, digest)

    def work(user: str) -> list[int]:
        first, final, _ = scram(user, "wrong")
        hashed.clear()
        with monkeypatch.context() as patched:
            patched.setattr(module.hmac, "digest", counted)
            with pytest.raises(Rejected):
                finish(greet(Script(startup(user=user), first, final), door, KEY))
        door.throttle.succeeded("10.0.0.1", user)
        return list(hashed)

    assert work("joe") == work("eve")
    assert len(work("bare")) == len(work("joe")) > 0


@pytest.mark.parametrize(
    "reply",
    [
        f.Query("SELECT 1"),
        f.AuthenticationReply(b""),
        f.AuthenticationReply(b"secret\0"),
        f.AuthenticationReply(write(f.SaslInitial("PLAIN", b"x"))),
        f.AuthenticationReply(write(f.SaslInitial("SCRAM-SHA-256", b"nonsense"))),
        f.AuthenticationReply(write(f.SaslInitial("SCRAM-SHA-256", b"\xff,,n=,r=x"))),
        f.AuthenticationReply(write(f.SaslInitial("SCRAM-SHA-256", b"p=tls,,n=,r=x"))),
        f.AuthenticationReply(write(f.SaslInitial("SCRAM-SHA-256", b"n,,n=,r="))),
        f.AuthenticationReply(write(f.SaslInitial("SCRAM-SHA-256", b"n,a=boss,n=,r=x"))),
    ],
)
def test_nonsense_is_refused(door: Doorkeeper, reply: Message) -> None:
    with pytest.raises(ProtocolViolation):
        finish(greet(Script(startup(user="joe"), reply), door, KEY))


@pytest.mark.parametrize("final", [b"", b"c=biws,r=x,p=eA==", b"c=!,r=x,p=!", b"c=biws", b"\xff"])
def test_a_proof_that_is_none_is_refused(door: Doorkeeper, final: bytes) -> None:
    first, _, _ = scram("joe", "secret")
    with pytest.raises(ProtocolViolation):
        finish(greet(Script(startup(user="joe"), first, f.AuthenticationReply(final)), door, KEY))


def test_trust_is_for_this_machine_alone(db: Database, door: Doorkeeper) -> None:
    trusting = Doorkeeper(db, trusts_local=True)
    here = Script(startup(user="anybody"))
    here.is_local = True
    assert finish(greet(here, trusting, KEY)).role is None
    known = Script(startup(user="joe"))
    known.is_local = True
    assert finish(greet(known, trusting, KEY)).role == "joe"
    no_login = Script(startup(user="group_"))
    no_login.is_local = True
    with pytest.raises(Rejected, match="not permitted to log in"):
        finish(greet(no_login, trusting, KEY))
    there = Script(startup(user="anybody"), f.Terminate())
    with pytest.raises(ProtocolViolation):
        finish(greet(there, trusting, KEY))
    assert there.said[0].letter == "R"
    local = Script(startup(user="anybody"), f.Terminate())
    local.is_local = True
    with pytest.raises(ProtocolViolation):
        finish(greet(local, door, KEY))


def test_a_name_is_needed(door: Doorkeeper) -> None:
    with pytest.raises(Rejected, match="no user name"):
        finish(greet(Script(startup()), door, KEY))


def test_encryption(door: Doorkeeper) -> None:
    plain = Script(f.SslRequest(), f.GssEncRequest(), startup(user="x"))
    with pytest.raises(Disconnected):
        finish(greet(plain, door, KEY))
    assert plain.raw[:2] == b"NN"
    able = Script(f.GssEncRequest(), f.SslRequest(), startup(user="x"))
    able.can_encrypt = True
    with pytest.raises(Disconnected):
        finish(greet(able, door, KEY))
    assert able.raw[:2] == b"NS"
    assert able.is_encrypted
    careless = Script(startup(user="joe"))
    careless.can_encrypt = True
    with pytest.raises(Rejected, match="must use TLS"):
        finish(greet(careless, door, KEY))
    endless = Script(*[f.SslRequest()] * 9)
    with pytest.raises(ProtocolViolation):
        finish(greet(endless, door, KEY))


def test_cancel_requests_are_passed_on_and_not_answered(door: Doorkeeper) -> None:
    script = Script(f.CancelRequest(9, b"abcd"))
    assert finish(greet(script, door, KEY)) is None
    assert door.cancelled == [(9, b"abcd")]
    assert script.raw == b""


def test_what_cannot_be_set_is_a_notice(db: Database) -> None:
    script = Script(startup(user="x", TimeZone="Europe/Atlantis", application_name="app", nope="1"))
    script.is_local = True
    session = finish(greet(script, Doorkeeper(db, trusts_local=True), KEY))
    notices = [dict(m.parts)["M"] for m in script.said if isinstance(m, b.NoticeResponse)]
    assert len(notices) == 2
    assert "TimeZone" in notices[0]
    assert session.settings.get("application_name") == "app"


def test_later_versions_are_negotiated(db: Database) -> None:
    script = Script(f.Startup((3 << 16) | 2, (("user", "x"), ("_pq_.fancy", "1"))))
    script.is_local = True
    finish(greet(script, Doorkeeper(db, trusts_local=True), KEY))
    assert script.said[0] == b.NegotiateProtocolVersion(3 << 16, ("_pq_.fancy",))


def test_failures_are_few(door: Doorkeeper) -> None:
    throttle, clock = Throttle(door.clock), door.clock
    for _ in range(ALLOWED):
        throttle.check("a")
        throttle.failed("a", "joe")
    with pytest.raises(Rejected) as caught:
        throttle.check("a")
    assert caught.value.code == "53300"
    throttle.check("b")
    clock.advance(1_000)
    throttle.check("a")
    throttle.failed("a", "joe")
    clock.advance(1_000)
    with pytest.raises(Rejected):
        throttle.check("a")
    clock.advance(LONGEST_MS)
    throttle.check("a")
    throttle.succeeded("a", "joe")
    throttle.failed("a", "joe")
    throttle.check("a")


def test_a_success_forgets_no_failures_of_others(door: Doorkeeper) -> None:
    throttle = Throttle(door.clock)
    for number in range(ALLOWED):
        throttle.failed("2001:db8::1", f"admin{number % 2}")
        throttle.succeeded("2001:db8::1", "joe")
    with pytest.raises(Rejected):
        throttle.check("2001:db8::2")
    throttle.check("2001:db8:0:1::1")
    throttle.succeeded("2001:db8::1", "admin0")
    throttle.check("2001:db8::1")
    for number in range(1_000):
        throttle.failed("b", f"user{number}")
    with pytest.raises(Rejected):
        throttle.check("b")
