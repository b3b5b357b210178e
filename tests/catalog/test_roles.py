"""Roles: durable, and of passwords only verifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scramp import ScramClient, ScramException, ScramMechanism

from reclock.catalog.verifier import Verifier, make_verifier, read_verifier
from reclock.errors import Error
from reclock.secret import Secret

if TYPE_CHECKING:
    from reclock.session.database import Database

    from .conftest import Opener


def accepts(verifier: Verifier, password: str) -> bool:
    """Whether SCRAM lets a client with that password in."""
    info = (verifier.salt, verifier.stored_key, verifier.server_key, verifier.iterations)
    server = ScramMechanism("SCRAM-SHA-256").make_server(lambda _: info)
    client = ScramClient(["SCRAM-SHA-256"], "joe", password)
    server.set_client_first(client.get_client_first())
    client.set_server_first(server.get_server_first())
    try:
        server.set_client_final(client.get_client_final())
    except ScramException:
        return False
    client.set_server_final(server.get_server_final())
    return True


def test_a_verifier_checks_one_password() -> None:
    verifier = make_verifier(Secret("hunter2"))
    assert accepts(verifier, "hunter2")
    assert not accepts(verifier, "hunter3")
    assert read_verifier(str(verifier)) == verifier
    assert make_verifier(Secret(str(verifier))) == verifier
    assert "hunter2" not in repr(verifier) + str(verifier)


@pytest.mark.parametrize("text", ["", "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:a$b:c", "md5abc"])
def test_what_is_no_verifier_is_none(text: str) -> None:
    assert read_verifier(text) is None


def test_roles_outlive_the_process(opener: Opener) -> None:
    db = opener()
    db.execute("CREATE USER joe PASSWORD 'secret'; CREATE ROLE admin SUPERUSER")
    db.execute("CREATE TABLE t (a INT); GRANT SELECT ON t TO joe, public")
    db = opener.reopened(db)
    joe = db.roles.get("joe")
    assert (joe.login, joe.superuser) == (True, False)
    assert joe.verifier is not None
    assert accepts(joe.verifier, "secret")
    assert db.roles.get("admin").superuser
    assert db.roles.may("joe", "SELECT", "u3")
    assert db.roles.may("nobody", "SELECT", "u3")
    db.execute("ALTER USER joe PASSWORD 'other' NOLOGIN; DROP ROLE admin")
    db = opener.reopened(db)
    joe = db.roles.get("joe")
    assert not joe.login
    assert joe.verifier is not None
    assert not accepts(joe.verifier, "secret")
    assert db.roles.find("admin") is None


def test_the_password_is_nowhere(opener: Opener) -> None:
    db = opener()
    db.execute("CREATE USER joe PASSWORD 'hunter2secret'")
    db.close()
    files = [path for path in opener.path.rglob("*") if path.is_file()]
    assert files
    assert not any(b"hunter2secret" in path.read_bytes() for path in files)


def test_what_is_refused(db: Database) -> None:
    db.execute("CREATE USER joe; CREATE TABLE t (a INT)")
    before = db.roles
    for sql, code in (
        ("CREATE USER joe", "42710"),
        ("CREATE ROLE public", "42939"),
        ("CREATE ROLE pg_monitor", "42939"),
        ("ALTER ROLE nobody LOGIN", "42704"),
        ("DROP ROLE nobody", "42704"),
        ("GRANT SELECT ON t TO nobody", "42704"),
        ("GRANT SELECT ON nothing TO joe", "42P01"),
        ("GRANT CREATE ON t TO joe", "0A000"),
        ("GRANT SELECT ON DATABASE reclock TO joe", "0A000"),
        ("GRANT joe TO joe", "42601"),
        ("CREATE USER x PASSWORD ''", "22023"),
        ("ALTER ROLE public LOGIN", "42939"),
        ("DROP ROLE IF EXISTS public", "42939"),
        ("CREATE USER x CREATEDB", "42601"),
    ):
        with pytest.raises(Error) as caught:
            db.execute(sql)
        assert caught.value.code == code, sql
        assert db.roles == before
    db.execute("CREATE USER boss SUPERUSER")
    with pytest.raises(Error) as caught:
        db.session("boss").execute("DROP ROLE joe, boss")
    assert caught.value.code == "55006"


def test_if_exists_and_nothing_to_do(db: Database) -> None:
    db.execute("CREATE USER joe PASSWORD 'x'; DROP ROLE IF EXISTS nobody, joe")
    assert db.roles.find("joe") is None
    db.execute("CREATE USER joe PASSWORD NULL")
    assert db.roles.get("joe").verifier is None
