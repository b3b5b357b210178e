"""Clients of a server name files only where they may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.errors import Error, InvalidValue
from reclock.session.file_roots import FileRoots
from reclock.sinks.failure import Stop
from reclock.sinks.files import FileLog, Place
from reclock.sql.parse import parse_statement

if TYPE_CHECKING:
    from pathlib import Path

    from reclock.session.database import Database

    from .conftest import Opener

SOURCE = "CREATE SOURCE s (line TEXT) FROM FILE '{}' FORMAT TEXT"
DIRECTORY = "CREATE SOURCE s (line TEXT) FROM DIRECTORY '{}' FORMAT TEXT"
SINK = "CREATE SINK k FROM t INTO FILE '{}' FORMAT JSON ENVELOPE MATERIALIZE"
SINKS = "CREATE SINK k FROM t INTO DIRECTORY '{}' FORMAT JSON ENVELOPE MATERIALIZE"


@pytest.fixture
def roots(tmp_path: Path) -> FileRoots:
    for name in ("one", "two", "one-more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a\n")
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "one" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "one" / "up").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(tmp_path / "two")
    return FileRoots.of([tmp_path / "one", tmp_path / "linked"])


def refused(db: Database, roots: FileRoots, sql: str) -> str:
    version = db._core.world.catalog.version
    with pytest.raises(Error) as caught:
        db.session(files=roots).execute(sql)
    assert db._core.world.catalog.version == version
    assert caught.value.hint
    return f"{caught.value.code} {caught.value.message}"


@pytest.mark.parametrize("statement", [SOURCE, DIRECTORY, SINK, SINKS])
def test_paths_that_lead_elsewhere(
    db: Database, roots: FileRoots, tmp_path: Path, statement: str
) -> None:
    db.execute("CREATE TABLE t (a INT)")
    before = sorted(tmp_path.rglob("*"))
    for path in (
        "/etc/passwd", "../secret", f"{tmp_path}/one/../secret", f"{tmp_path}/secret",
        "link", "up/secret", "up", "..", "/", f"{tmp_path}/one-more/a.txt", "none/../../secret",
        "../one-more", "/proc/self/environ", "/dev/stdin", "~/../../../etc/passwd",
    ):  # fmt: skip
        assert "42501" in refused(db, roots, statement.format(path)), path
    for address in ("file:///etc/passwd", "s3://b/x", "http://h/x", f"file://{tmp_path}/one/a.txt"):
        assert "22023" in refused(db, roots, statement.format(address)), address
    assert "42501" in refused(db, FileRoots(), statement.format("a.txt"))
    assert sorted(tmp_path.rglob("*")) == before


def test_refusals_do_not_say_what_there_is(db: Database, roots: FileRoots, tmp_path: Path) -> None:
    there = refused(db, roots, SOURCE.format(f"{tmp_path}/secret"))
    absent = refused(db, roots, SOURCE.format(f"{tmp_path}/absent"))
    assert there.replace("secret", "absent") == absent


def test_a_star_is_a_star(db: Database, roots: FileRoots) -> None:
    assert "58P01" in refused(db, roots, SOURCE.format("*.txt"))


def test_paths_in_the_roots(opener: Opener, roots: FileRoots, tmp_path: Path) -> None:
    db = opener()
    db.execute("CREATE TABLE t (a INT)")
    session = db.session(files=roots)
    session.execute(SOURCE.format("a.txt"))
    session.execute(DIRECTORY.format(f"{tmp_path}/linked").replace("SOURCE s", "SOURCE d"))
    session.execute(SINK.format("./x/../out.json"))
    facts = {i.name: i.facts for i in db._core.world.catalog.items.values() if i.name != "t"}  # type: ignore[attr-defined]
    assert facts["s"]["path"] == str(tmp_path / "one" / "a.txt")
    assert (facts["d"]["path"], facts["d"]["root"]) == (str(tmp_path / "two"),) * 2
    assert facts["k"]["topic"] == str(tmp_path / "one" / "out.json")
    assert facts["k"]["root"] == str(tmp_path / "one")
    db = opener.reopened(db)
    opener.clock.advance(5_000)
    db.tick()
    assert db.execute("SELECT line FROM s").rows == [("a",)]
    again = {i.name: i.facts for i in db._core.world.catalog.items.values() if i.name != "t"}  # type: ignore[attr-defined]
    assert again == facts


def test_who_opens_the_database_is_free(db: Database, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    db.execute(SOURCE.format(tmp_path / "a.txt"))


def test_a_sink_whose_place_becomes_a_link(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("out.json", ".out.json.progress", ".out.json.tmp", ".out.json.lock"):
        link = root / name
        link.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(Stop) as caught:
            FileLog(Place(root / "out.json", directory=False, root=str(root)), "k").fence()
        assert caught.value.error.code == "42501"
        link.unlink()
    fenced = FileLog(Place(root / "out.json", directory=False, root=str(root)), "k").fence()
    (root / "out.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Stop):
        fenced.send([], [])
    fenced.close()
    assert not (tmp_path / "elsewhere").exists()


def test_roots_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "inner").mkdir()
    for root in (tmp_path, tmp_path / "state", tmp_path / "state" / "inner"):
        with pytest.raises(InvalidValue, match="the database is in there"):
            FileRoots.of([root], private=[tmp_path / "state"])
    with pytest.raises(InvalidValue, match="not a directory"):
        FileRoots.of([tmp_path / "none"])


KAFKA = """CREATE SOURCE s (a TEXT) FROM KAFKA BROKER 'b:9092' TOPIC 't' FORMAT TEXT
WITH ("{}" = '{}')"""


def test_options_of_client_libraries_that_reach_farther(
    db: Database, roots: FileRoots, tmp_path: Path
) -> None:
    for name in (
        "kafka.plugin.library.paths", "kafka.sasl.kerberos.kinit.cmd", "kafka.ssl.engine.location",
        "kafka.ssl.providers",
    ):  # fmt: skip
        inside = f"{tmp_path}/one/a.txt"
        assert "42501" in refused(db, roots, KAFKA.format(name, inside)), name
    for name in (
        "kafka.ssl.ca.location", "kafka.ssl.key.location", "kafka.ssl.crl.location",
        "kafka.ssl.keystore.location", "kafka.ssl.certificate.location", "kafka.offset.store.path",
        "kafka.https.ca.location", "kafka.sasl.kerberos.keytab", "registry.ssl.ca.location",
        "kafka.sasl.oauthbearer.assertion.file", "kafka.ssl.ca.certificate.stores",
        "kafka.sasl.oauthbearer.assertion.private.key.file", "registry.ssl.key.location",
        "kafka.sasl.oauthbearer.assertion.jwt.template.file",
    ):  # fmt: skip
        assert "42501" in refused(db, roots, KAFKA.format(name, "/etc/passwd")), name
        assert "42501" in refused(db, roots, KAFKA.format(name, f"{tmp_path}/one/link")), name
        assert "42501" in refused(db, FileRoots(), KAFKA.format(name, "a.txt")), name
        assert "22023" in refused(db, roots, KAFKA.format(name, "a.txt")), name
    roots.admitted(parse_statement(KAFKA.format("kafka.ssl.ca.location", f"{tmp_path}/one/a.txt")))  # type: ignore[type-var]
    roots.admitted(parse_statement(KAFKA.format("kafka.sasl.username", "joe")))  # type: ignore[type-var]
