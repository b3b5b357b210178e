"""Every command and option is in docs/command-line.md."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from reclock.cli.main import cli

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
            assert f"`{option.opts[-1]}`" in part, option.opts
