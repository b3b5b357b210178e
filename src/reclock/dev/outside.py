"""Java's way out of this machine: certificates, proxies, a mirror of Maven's repository.

Python and most programs follow the machine: ``SSL_CERT_FILE``, ``HTTPS_PROXY``, ``settings.xml``.
Java follows only files of its own, and the bundled runtime has none that an administrator could
have edited. These functions say the same in Java's words:

- ``trust_store`` writes the certificate authorities that the machine trusts as a key store;
- ``proxies`` gives the options for the proxies that the environment names;
- ``ivy_settings`` gives the user's settings of Ivy, or makes some from the mirror of
  ``~/.m2/settings.xml`` that stands for Maven's central repository.

Passwords are not handed on: not for proxies, not for mirrors.

Tests: tests/dev/test_outside.py.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import getproxies
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterable

# A file or directory of authorities each; Python itself reads SSL_CERT_FILE and SSL_CERT_DIR.
_BUNDLES: Final = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
_OPTIONS: Final = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
_LOCAL: Final = ("localhost", "127.*", "[::1]")  # what Java does not ask a proxy for

_MAGIC: Final = 0xFEEDFEED
_VERSION: Final = 2
_TRUSTED: Final = 2
_SALT: Final = b"Mighty Aphrodite"
_PASSWORD: Final = "changeit"  # everybody knows it: the certificates are public


def trust_store(path: Path) -> list[str]:
    """Write what the machine trusts to ``path``; return Java's options for it, none if nothing."""
    found = _authorities()
    if not found:
        return []
    path.write_bytes(key_store(found))
    return [
        f"-Djavax.net.ssl.trustStore={path}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
    ]


def key_store(certificates: Iterable[bytes]) -> bytes:
    """Return a JKS key store that trusts ``certificates`` (DER)."""
    entries = [
        struct.pack(">I", _TRUSTED) + _utf(str(place)) + struct.pack(">q", 0)
        + _utf("X.509") + struct.pack(">I", len(certificate)) + certificate
        for place, certificate in enumerate(certificates)
    ]  # fmt: skip
    store = struct.pack(">III", _MAGIC, _VERSION, len(entries)) + b"".join(entries)
    password = _PASSWORD.encode("utf-16-be")
    return store + hashlib.sha1(password + _SALT + store, usedforsecurity=False).digest()


def proxies() -> list[str]:
    """Return Java's options for the proxies of the environment; none if Java has been told."""
    if any("proxyHost" in os.environ.get(name, "") for name in _OPTIONS):
        return []
    given = getproxies()
    options = []
    for scheme in ("http", "https"):
        address = given.get(scheme, "")
        proxy = urlsplit(address if "://" in address else f"http://{address}")
        if proxy.hostname:
            options += [
                f"-D{scheme}.proxyHost={proxy.hostname}",
                f"-D{scheme}.proxyPort={proxy.port or 80}",
            ]
    if options:
        hosts = [host.strip() for host in given.get("no", "").split(",") if host.strip()]
        direct = [f"*{host}" if host.startswith(".") else host for host in hosts]
        options.append(f"-Dhttp.nonProxyHosts={'|'.join([*_LOCAL, *direct])}")
    return options


def ivy_settings(directory: Path) -> Path | None:
    """Return the settings that Ivy is to use, made in ``directory`` if need be; or None."""
    home = Path.home()
    own = home / ".ivy2" / "ivysettings.xml"
    if own.is_file():
        return own
    mirror = _mirror(home / ".m2" / "settings.xml")
    if mirror is None:
        return None
    made = directory / "ivysettings.xml"
    made.write_text(
        '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
        f'<ibiblio name="mirror" m2compatible="true" root={quoteattr(mirror)}/>'
        "</resolvers></ivysettings>",
        encoding="utf-8",
    )
    return made


def _mirror(settings: Path) -> str | None:
    """Return the address of the first mirror of Maven's central repository, or None."""
    try:
        root = ElementTree.parse(settings).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        of = {part.strip() for part in (mirror.findtext("{*}mirrorOf") or "").split(",")}
        address = (mirror.findtext("{*}url") or "").strip()
        if address and "!central" not in of and of & {"*", "external:*", "central"}:
            return address
    return None


def _authorities() -> list[bytes]:
    """Return the certificate authorities that the machine's other programs trust (DER)."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    named = [paths.cafile, paths.capath, *map(os.environ.get, _BUNDLES)]
    for place in (Path(name) for name in named if name):
        files = {file.resolve() for file in place.iterdir()} if place.is_dir() else {place}
        for file in files:
            with suppress(OSError):  # no certificate, or not for us
                context.load_verify_locations(file)
    return context.get_ca_certs(binary_form=True)


def _utf(text: str) -> bytes:
    """Return ASCII as Java's ``writeUTF`` does."""
    return struct.pack(">H", len(text)) + text.encode("ascii")
