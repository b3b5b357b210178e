"""Programs of Debian that tests run: found on the machine, or installed, which takes root.

Two processes of a test session may want a program at once: one installs, the other waits.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest


@cache
def program(name: str, *packages: str) -> str:
    """Return where a program is, with its packages installed if it is not there.

    Who may install nothing is told what is missing, and the test is skipped; a machine where
    installing fails, fails.
    """
    if (found := shutil.which(name)) is not None:
        return found
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        pytest.skip(f"{name} is missing, and only root on Debian can have it installed")
    with (Path(tempfile.gettempdir()) / "reclock-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (found := shutil.which(name)) is not None:
            return found
        install = ("install", "-qq", "-y", "--no-install-recommends", *packages)
        for command in (("update", "-qq"), install):
            done = subprocess.run(
                ["apt-get", "-o", "DPkg::Lock::Timeout=300", *command],
                capture_output=True, text=True, check=False,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )  # fmt: skip
            if done.returncode:
                pytest.fail(f"apt-get {command[0]} cannot get {packages}: {done.stderr}")
    found = shutil.which(name)
    assert found is not None, name
    return found


def chromium() -> str:
    """Return where a Chromium is."""
    for name in ("chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    return program("chromium", "chromium", "fonts-dejavu-core")
