"""Archives of classes: made beside, once, whole or not at all, and never in anybody's way."""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
import sys
from pathlib import Path
from threading import Timer
from time import monotonic, sleep
from types import SimpleNamespace

import pytest

from reclock.java import find_java, provide_java
from reclock.spark import class_archive
from reclock.spark.class_archive import ClassArchive

VARIABLE = "SPARK_SUBMIT_OPTS"
FAKE = """#!/bin/sh
for argument do
  case "$argument" in
    -XX:SharedArchiveFile=*) archive=${{argument#*=}} ;;
    -XX:SharedClassListFile=*) list=${{argument#*=}} ;;
  esac
done
echo run >> {ran}
while [ ! -e {go} ]; do sleep 0.02; done
cp "$list" "$archive"
exit {status}
"""


@pytest.fixture(autouse=True)
def _no_options(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(class_archive, "DELAY_SECONDS", 3_600.0)
    timers = []

    class Noted(Timer):
        def start(self):
            timers.append(self)
            super().start()

    monkeypatch.setattr(class_archive, "Timer", Noted)
    yield
    for timer in timers:
        timer.cancel()


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    """A Java that makes an archive of a list by copying it, when it may."""

    def made(status=0, *, waits=False):
        home = tmp_path / "jdk"
        (home / "bin").mkdir(parents=True)
        (home / "release").write_text('JAVA_VERSION="17.0.1"\n')
        program = home / "bin" / "java"
        program.write_text(FAKE.format(ran=tmp_path / "ran", go=tmp_path / "go", status=status))
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(home))
        if not waits:
            (tmp_path / "go").touch()

    return made


def gateway(info="mixed mode, sharing"):
    known = {"java.class.path": "/a.jar:/b.jar", "java.vm.info": info}
    system = SimpleNamespace(getProperty=known.__getitem__)
    lang = SimpleNamespace(System=system)
    return SimpleNamespace(jvm=SimpleNamespace(java=SimpleNamespace(lang=lang)))


def archive(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return ClassArchive(scratch, tmp_path / "cache")


def offered(made):
    with made.offered():
        return shlex.split(os.environ.get(VARIABLE, ""))


def recorded(made, text="one\ntwo\nthr"):
    """Have a JVM that starts write its list."""
    option = offered(made)[-1]
    name, _, path = option.partition("=")
    assert name == "-XX:DumpLoadedClassList"
    Path(path).write_text(text)
    made.started(gateway())


def eventually(condition, seconds=60):
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline
        sleep(0.01)


def files(tmp_path):
    return sorted(path.suffix for path in (tmp_path / "cache").iterdir())


def settled(tmp_path, *more):
    """Wait until nothing is being made, and nothing but the result is left."""
    with (tmp_path / "cache" / "spark.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert files(tmp_path) == sorted([".classes", ".jsa", ".lock", *more])


def test_an_archive_is_made_beside_and_offered_to_the_next(tmp_path, fake_java):
    fake_java()
    first = archive(tmp_path)
    assert [option.partition("=")[0] for option in offered(first)] == ["-XX:DumpLoadedClassList"]
    recorded(first)
    first.make()
    settled(tmp_path)
    (made,) = (tmp_path / "cache").glob("*.jsa")
    assert made.read_text() == "one\ntwo\n"  # whole lines only
    sharing = ["-Xshare:auto", f"-XX:SharedArchiveFile={made}"]
    assert offered(archive(tmp_path))[:2] == sharing


def test_it_is_made_again_when_much_more_was_loaded(tmp_path, fake_java):
    fake_java()
    names = [f"class{i}" for i in range(40)]
    for loaded, archived in (
        (names[:20], 20), (names[:10], 20), (names[:21], 20), (names[5:24], 24), (names[:4], 24),
    ):  # fmt: skip
        made = archive(tmp_path)
        recorded(made, "\n".join([*loaded, ""]))
        made.make()
        made.make()
        settled(tmp_path)
        assert len(made._made.read_text().splitlines()) == archived
    assert (tmp_path / "ran").read_text() == "run\n" * 2


def test_options_of_the_user_come_last_and_stay(tmp_path, fake_java, monkeypatch):
    fake_java()
    monkeypatch.setenv(VARIABLE, "-Xshare:off -Dmine='a b'")
    assert offered(archive(tmp_path))[1:] == ["-Xshare:off", "-Dmine=a b"]
    assert os.environ[VARIABLE] == "-Xshare:off -Dmine='a b'"
    monkeypatch.delenv(VARIABLE)
    assert len(offered(archive(tmp_path))) == 1
    assert VARIABLE not in os.environ


def test_two_at_once_are_one(tmp_path, fake_java):
    fake_java(waits=True)
    first, second = archive(tmp_path), archive(tmp_path)
    for made in (first, second):
        recorded(made)
    first.make()
    eventually((tmp_path / "ran").exists)
    second.make()  # waits for nobody
    (tmp_path / "go").touch()
    settled(tmp_path)
    assert (tmp_path / "ran").read_text() == "run\n"


def test_it_ends_with_the_process_that_began_it(tmp_path, fake_java):
    fake_java(waits=True)
    made = archive(tmp_path)
    recorded(made)
    made.make()
    eventually((tmp_path / "ran").exists)
    assert files(tmp_path) == [".lock", ".wanted"]
    os.close(made._life)  # as the end of the process does
    eventually(lambda: files(tmp_path) == [".lock"])
    (tmp_path / "go").touch()
    again = archive(tmp_path)  # it was no failure: another one makes it
    recorded(again)

    def is_made():
        again.make()  # the lock may be held for another moment
        return files(tmp_path) == [".classes", ".jsa", ".lock"]

    eventually(is_made)
    assert again._made.stat().st_size


def test_what_cannot_be_made_is_not_tried_again(tmp_path, fake_java):
    fake_java(status=1)
    first = archive(tmp_path)
    recorded(first)
    first.make()
    settled(tmp_path)
    second = archive(tmp_path)
    assert offered(second) == []
    second.started(gateway("mixed mode"))
    assert offered(archive(tmp_path)) == []


def test_an_archive_stays_if_a_better_one_cannot_be_made(tmp_path, fake_java):
    fake_java(status=1)
    made = archive(tmp_path)
    (tmp_path / "cache").mkdir()
    made._made.write_text("good")
    recorded(made)
    for _ in range(2):
        made.make()
        settled(tmp_path)
    assert made._made.read_text() == "good"
    assert (tmp_path / "ran").read_text() == "run\n"


def test_an_archive_that_java_does_not_take_is_removed(tmp_path, fake_java):
    fake_java()
    made = archive(tmp_path)
    offered(made)
    there = made._made
    there.write_text("of another time")
    made.started(gateway())
    assert there.exists()
    made.started(gateway("mixed mode"))
    assert not there.exists()


def test_a_java_that_does_not_start_so_is_started_without(tmp_path, fake_java):
    fake_java()
    made = archive(tmp_path)
    offered(made)
    made._made.write_text("damaged")
    made.failed()
    assert not made._made.exists()  # another one may do
    made.failed()
    assert offered(made) == []


def test_archives_that_nobody_uses_are_removed(tmp_path, fake_java):
    fake_java()
    made = archive(tmp_path)
    recorded(made)
    old, young = (tmp_path / "cache" / f"spark-{age}.jsa" for age in ("old", "young"))
    for other in (old, young):
        other.touch()
    os.utime(old, (0, 0))
    made.make()
    assert not old.exists()
    assert young.exists()
    settled(tmp_path, ".jsa")


def test_without_a_cache_there_is_no_archive(tmp_path, fake_java):
    fake_java()
    (tmp_path / "cache").write_text("not a directory")
    made = archive(tmp_path)
    assert offered(made) == []
    made.started(gateway())
    made.make()
    made.failed()


def test_each_java_and_each_class_path_has_its_own(tmp_path, fake_java, monkeypatch):
    fake_java()
    names = {archive(tmp_path)._made}
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.2"\n')
    names.add(archive(tmp_path)._made)
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    names.add(archive(tmp_path)._made)
    names.add(archive(tmp_path)._made)
    assert len(names) == 3


def use(made, *more):
    command = [str(find_java()), *offered(made), *more, "-version"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("bundled", [False, True], ids=["machine", "bundled"])
def test_a_real_java_makes_and_takes_it_and_does_without_a_damaged_one(
    tmp_path, monkeypatch, bundled
):
    if bundled:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    provide_java()
    first = archive(tmp_path)
    assert use(first).returncode == 0
    assert (tmp_path / "scratch" / "classes").stat().st_size > 1_000
    first.started(gateway())
    first._class_path = str(tmp_path / "no.jar")
    first.make()
    settled(tmp_path)
    done = use(archive(tmp_path), "-Xshare:on")  # refuses to start without
    assert done.returncode == 0, done.stdout
    first._made.chmod(0o644)
    first._made.write_bytes(b"garbage" * 1_000)
    done = use(archive(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "sharing" not in done.stderr


SPARK = """
import sys
from reclock.spark.session import Spark
spark = Spark()
assert spark.session.range(3).count() == 3
print(spark.session._jvm.java.lang.System.getProperty("java.vm.info"))
sys.stdout.flush()
sys.stdin.read()  # as long as it is wanted
spark.close()
"""


@pytest.mark.slow(seconds=60)
def test_spark_uses_it(tmp_path):
    def said(until=lambda: True):
        env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen([sys.executable, "-c", SPARK], env=env, text=True, **pipes) as run:
            try:
                found = run.stdout.readline()
                eventually(until, 600)  # of the lowest priority
            finally:
                _, errors = run.communicate()
        assert (run.returncode, errors) == (0, "")
        return found

    def archives():
        return [path for path in (tmp_path / "reclock").glob("*.jsa") if path.stat().st_size]

    said()  # not long enough
    assert not archives()
    said(until=archives)
    assert "sharing" in said()
    (made,) = archives()
    assert made.stat().st_size > 50_000_000
    made.unlink()  # a JVM that is about to end may have it mapped
    made.write_bytes(b"garbage" * 1_000)
    assert "sharing" not in said()
    assert not made.exists() or made.stat().st_size > 50_000_000  # another will be made, or was
