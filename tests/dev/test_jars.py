"""Fetching Kafka's jars, with an Ivy that is a shell script."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from reclock.dev import jars
from reclock.dev.jars import KAFKA_VERSION, kafka_jars
from reclock.errors import BrokerFailed

if TYPE_CHECKING:
    from pathlib import Path

IVY = f"""#!/bin/sh
for last do :; done
directory=$(dirname "$last")
echo ran >>"{{log}}"
echo "$@" >>"{{log}}.arguments"
echo "downloading https://example.invalid/x/kafka_2.13-{KAFKA_VERSION}.jar ..."
sleep 0.2
mkdir -p "$directory"
{{make}} "$directory/kafka_2.13-{KAFKA_VERSION}.jar"
echo "   ERRORS: no route to host"
"""


@pytest.fixture
def ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that stands for Java with Ivy; fails while the file ``down`` exists."""
    program = tmp_path / "java"
    make = f'[ -e "{tmp_path}/down" ] || touch'
    program.write_text(IVY.format(log=tmp_path / "log", make=make))
    program.chmod(0o755)
    monkeypatch.setattr(jars, "find_java", lambda: program)
    return tmp_path


def test_processes_that_ask_at_once_share_one_download(ivy: Path) -> None:
    said: list[str] = []
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(kafka_jars(said.append, ivy / "cache")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ivy / "cache" / f"kafka-{KAFKA_VERSION}"] * 4
    assert (ivy / "log").read_text() == "ran\n"
    assert said[-1] == f"fetching kafka_2.13-{KAFKA_VERSION}"
    assert {path.name for path in (ivy / "cache").iterdir()} == {
        f"kafka-{KAFKA_VERSION}",
        "kafka.lock",
    }


def test_a_download_that_fails_leaves_nothing_and_can_be_tried_again(ivy: Path) -> None:
    (ivy / "down").touch()
    with pytest.raises(BrokerFailed, match="could not be fetched") as caught:
        kafka_jars(lambda _: None, ivy / "cache")
    assert caught.value.detail == "ERRORS: no route to host"
    assert {path.name for path in (ivy / "cache").iterdir()} == {"kafka.lock"}
    (ivy / "down").unlink()
    assert any(kafka_jars(lambda _: None, ivy / "cache").iterdir())


def test_what_other_programs_have_is_not_used(ivy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ivy's own settings would look into ~/.ivy2/local first; those of the user may."""
    monkeypatch.setenv("HOME", str(ivy / "home"))
    kafka_jars(lambda _: None, ivy / "cache")
    said = (ivy / "log.arguments").read_text()
    assert f"-Divy.default.ivy.user.dir={ivy}/cache/ivy-kafka " in said
    (ivy / "home" / ".ivy2").mkdir(parents=True)
    own = ivy / "home" / ".ivy2" / "ivysettings.xml"
    own.write_text("<ivysettings/>")
    kafka_jars(lambda _: None, ivy / "other")
    said = (ivy / "log.arguments").read_text().splitlines()[-1]
    assert f"-settings {own}" in said
    assert "ivy.default" not in said
