"""Servers that a test stops, kills, starts again and configures, in the directory of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from reclock.testing.postgres import _account, _installed, running_postgres

from .conftest import SETTINGS, Upstream


class Server:
    """A server whose life is the test's."""

    def __init__(self, url, settings):
        self.url = url
        self.root = Path(url.split("host=")[1])
        self.data = self.root / "data"
        self._settings = {"fsync": "off", "listen_addresses": "", "shared_buffers": "16MB"}
        self._settings |= settings
        copied = sorted(self.root.glob("wheel/*/*/bin/postgres"))
        self.program = copied[-1] if copied else _installed() / "bin" / "postgres"
        self._own = None

    @property
    def pid(self):
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def database(self):
        return Upstream(self.url)

    def stop(self, how=signal.SIGINT):
        """End it: SIGINT kindly, SIGKILL as a crash does."""
        pid = self.pid
        os.kill(pid, how)
        if self._own is not None:
            self._own.wait()
        deadline = time.monotonic() + 90  # a walsender is waited for, up to its timeout of a minute
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            if Path(f"/proc/{pid}/stat").read_text().split(") ")[1].startswith("Z"):
                break
            time.sleep(0.05)
        if how == signal.SIGKILL:
            time.sleep(0.5)  # its sessions see that it is gone, and end
            for left in (self.data / "postmaster.pid", *self.root.glob(".s.PGSQL.*")):
                left.unlink()  # a zombie has its number

    def start(self):
        """Start it where it was; what a crash left of it may need a moment to go."""
        command = [f"{self.program}", "-D", f"{self.data}", "-k", f"{self.root}"]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        for _ in range(100):
            with (self.root / "log").open("ab") as log:
                self._own = subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=self.root, env={"LC_ALL": "C"},
                    **_account(),
                )  # fmt: skip
            while self._own.poll() is None:
                with suppress(OSError):
                    status = (self.data / "postmaster.pid").read_text()
                    if status.startswith(f"{self._own.pid}\n") and "ready" in status:
                        return
                time.sleep(0.05)
        raise AssertionError((self.root / "log").read_text()[-2000:])

    def close(self):
        if self._own is not None and self._own.poll() is None:
            self._own.send_signal(signal.SIGINT)
            self._own.wait(30)

    def own(self, path):
        """Let the server have a file that the test made."""
        account = _account()
        if account:
            for one in (path, *path.rglob("*")):
                shutil.chown(one, account["user"], account["group"])


def restart(server, upstream):
    """Kill a server, and start it again; ``upstream`` is a database of it."""
    upstream.session.close()
    server.stop(signal.SIGKILL)
    server.start()
    upstream.session = upstream.connect()


@contextmanager
def serving(**settings):
    """Run a server; a setting that is None has its default."""
    settings = {k: v for k, v in (SETTINGS | settings).items() if v is not None}
    with running_postgres(settings) as url:
        made = Server(url, settings)
        try:
            yield made
        finally:
            made.close()
