"""Every command, option, setting and command of the shell is in docs/command-line.md."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.shell_completion import get_completion_class

from reclock.cli.main import cli
from reclock.cli.options import SETTINGS
from reclock.cli.shell.meta import _DOES, _KINDS

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")


def commands(command, path=("reclock",)):
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    else:
        yield path, command


@pytest.mark.parametrize(("path", "command"), list(commands(cli)), ids=str)
def test_a_command_is_documented_with_its_options(path, command):
    section = " ".join(path[:3] if path[1] == "dev" else path[:2])
    assert f"## {section}\n" in TEXT
    part = TEXT.split(f"## {section}\n")[1].split("\n## ")[0]
    if path[1] == "dev":
        assert f"`{path[-1]}`" in part
    for option in command.params:
        if isinstance(option, click.Option):
            lacking = f"docs/command-line.md lacks {option.opts} in its section {section}"
            assert f"`{option.opts[-1]}`" in part, lacking


def test_what_all_commands_share_is_documented():
    shared = TEXT.split("\n## ")[0] + TEXT.split("## Settings\n")[1].split("\n## ")[0]
    for option in cli.params:
        assert any(f"`{name}" in shared for name in option.opts), option.opts
    for setting in SETTINGS:
        assert f"`{setting.flag}`" in shared


def test_commands_of_the_shell_are_documented():
    part = TEXT.split("## reclock sql\n")[1].split("\n## ")[0]
    for name in {*_DOES, *_KINDS, "\\d", "\\sf"}:
        assert re.search(rf"`{re.escape(name)}[ `]", part), name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    assert f"{shell}_source" in TEXT
    found = get_completion_class(shell)(cli, {}, "reclock", "_RECLOCK_COMPLETE")
    assert "_RECLOCK_COMPLETE" in found.source()
    commands = {item.value for item in found.get_completions([], "")}
    assert {"run", "sql", "inspect", "doctor"} <= commands
    assert "--dry-run" in {item.value for item in found.get_completions(["run"], "--")}
    assert "remap" in {item.value for item in found.get_completions(["inspect"], "r")}
