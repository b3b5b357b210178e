"""The command line: help, version, errors."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from reclock import __version__
from reclock.cli.main import cli, main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("arguments", [["--help"], ["dev", "-h"], ["dev", "kafka", "--help"]])
def test_every_group_has_help(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    assert "Commands:" in result.output


def test_what_each_command_does_is_said_whole() -> None:
    listed = CliRunner().invoke(cli, ["--help"]).output.split("Commands:")[1].split("\n")
    assert len(listed) > len(cli.commands)
    assert not [line for line in listed if line.endswith("...")]


def test_it_is_a_module_too() -> None:
    command = [sys.executable, "-m", "reclock", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == f"reclock, version {__version__}\n"


HEAVY = (
    "asyncio", "concurrent.futures", "confluent_kafka", "numpy", "platformdirs", "polars",
    "prompt_toolkit", "pyarrow", "pygments", "pyspark", "rich", "sqlalchemy", "sqlglot", "ssl",
)  # fmt: skip


@pytest.mark.parametrize("command", [[], ["run"], ["serve"], ["sql"], ["demo"], ["doctor"]])
def test_help_loads_nothing_that_takes_long(command: list[str]) -> None:
    code = (
        "import sys; from reclock.cli.main import cli\n"
        f"try: cli({[*command, '--help']!r})\n"
        f"finally: print(*sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage:" in done.stdout
    assert done.stderr.split() == []


def test_an_error_is_printed_with_its_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        start = ["reclock", "dev", "kafka", "start", "--dir", str(tmp_path), "--port", port]
        monkeypatch.setattr(sys, "argv", start)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"error: port {port} cannot be used" in printed.err
    assert "hint: choose another" in printed.err
