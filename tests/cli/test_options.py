"""Settings: the flag before the environment before the file before the default."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reclock.cli.main import cli
from reclock.cli.options import SETTINGS, defaults
from reclock.errors import InvalidValue

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")


def looked_at(monkeypatch, tmp_path, *arguments, **environment):
    """Return which state directory ``doctor`` looks at."""
    seen = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "reclock.cli.doctor.examine", lambda state, _: seen.append(str(state)) or iter(())
    )
    result = CliRunner().invoke(cli, arguments, env=environment)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_the_order_of_sources(monkeypatch, tmp_path):
    assert looked_at(monkeypatch, tmp_path, "doctor") == "reclock-state"
    (tmp_path / "reclock.toml").write_text('state = "from-file"')
    assert looked_at(monkeypatch, tmp_path, "doctor") == "from-file"
    (tmp_path / "other.toml").write_text('state = "from-other"')
    assert looked_at(monkeypatch, tmp_path, "--config", "other.toml", "doctor") == "from-other"
    environment = {"RECLOCK_STATE": "from-environment"}
    assert looked_at(monkeypatch, tmp_path, "doctor", **environment) == "from-environment"
    flag = ("doctor", "--state", "from-flag")
    assert looked_at(monkeypatch, tmp_path, *flag, **environment) == "from-flag"


@pytest.mark.parametrize(
    ("text", "message"),
    [("stat = 'x'", "is not a setting"), ("state = 7", "is not a setting"), ("state", "cannot")],
)
def test_a_file_that_says_nonsense(tmp_path, text, message):
    file = tmp_path / "reclock.toml"
    file.write_text(text)
    with pytest.raises(InvalidValue, match=message):
        defaults(file)


def test_a_file_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert defaults(None) == {}
    with pytest.raises(InvalidValue, match="there is no file"):
        defaults(tmp_path / "none.toml")


def test_the_documented_table_is_the_one_in_the_code():
    for setting in SETTINGS:
        default = f"`{setting.default}`" if setting.default else "–"
        row = f"| `{setting.name}` | `{setting.flag}` | `{setting.variable}` | {default} |"
        assert f"{row} {setting.meaning} |" in TEXT
