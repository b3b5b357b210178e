"""Settings: the flag before the environment before the file before the default."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reclock.cli.main import cli
from reclock.cli.options import SETTINGS, defaults, opened
from reclock.cli.serve import serve
from reclock.errors import InvalidValue

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")


def looked_at(monkeypatch, tmp_path, *arguments, **environment):
    """Return which state directory ``doctor`` looks at."""
    seen = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "reclock.cli.doctor.examine", lambda state, _, **__: seen.append(str(state)) or iter(())
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
    [
        ("stat = 'x'", "is not a setting"),
        ("state = 7", "cannot be 7"),
        ("state", "cannot"),
        ("port = '7'", "cannot be '7'"),
        ("port = true", "cannot be True"),
        ("trust_local = 'yes'", "cannot be 'yes'"),
        ("file_root = ['a', 7]", "cannot be"),
        ("host = ['a']", "cannot be"),
    ],
)
def test_a_file_that_says_nonsense(tmp_path, text, message):
    file = tmp_path / "reclock.toml"
    file.write_text(text)
    with pytest.raises(InvalidValue, match=message):
        defaults(file)


def test_how_to_serve_is_a_setting_too(monkeypatch, tmp_path):
    """Every option of ``serve`` comes from the flag, the environment or the file."""
    monkeypatch.chdir(tmp_path)
    seen = []
    monkeypatch.setattr(serve, "callback", lambda **given: seen.append(given))
    for name in ("a", "b", "x.pem", "init.sql"):
        (tmp_path / name).touch() if "." in name else (tmp_path / name).mkdir()
    said = {
        "state": "s", "master": "m", "conf": ["spark.a=b", "spark.c=d:e"],
        "properties_file": "x.pem", "store": "o", "meta": "p", "host": "0.0.0.0", "port": 7,
        "tls_cert": "x.pem", "tls_key": "x.pem", "trust_local": True, "max_connections": 5,
        "file_root": ["a", "b"], "init": "init.sql", "http": "off", "log_format": "json",
        "log_level": "error",
    }  # fmt: skip
    of_run = {"listen"}
    assert set(said) == {setting.name for setting in SETTINGS} - of_run
    (tmp_path / "t.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in said.items()))
    environment = {f"RECLOCK_{k.upper()}": (" " if k == "conf" else ":").join(v)
                   if isinstance(v, list) else str(v) for k, v in said.items()}  # fmt: skip
    flags = []
    for name, value in said.items():
        flag = f"--{name.replace('_', '-')}"
        values = value if isinstance(value, list) else [] if value is True else [value]
        flags += [flag] if value is True else [x for v in values for x in (flag, str(v))]
    for arguments, given in (
        (("--config", "t.toml", "serve"), {}),
        (("serve",), environment),
        (("serve", *flags), {}),
    ):
        result = CliRunner().invoke(cli, arguments, env=given)
        assert result.exit_code == 0, result.output
    (tmp_path / "one.toml").write_text("file_root = 'a'")
    assert CliRunner().invoke(cli, ("--config", "one.toml", "serve")).exit_code == 0
    *all_, one = [
        {k: list(map(str, v)) if isinstance(v, tuple) else v if type(v) in (int, bool) else str(v)
         for k, v in given.items()}
        for given in seen
    ]  # fmt: skip
    assert all_ == [said] * 3
    assert one["file_root"] == ["a"]


def test_settings_of_spark(tmp_path):
    file = tmp_path / "spark.conf"
    file.write_text("spark.master yarn\nspark.executor.memory=4g\nother 1\n")
    where = {"master": None, "store": None, "meta": None, "properties_file": file}
    given = ("spark.executor.memory=8g", "spark.a=b=c")
    assert opened({**where, "conf": given}) == {
        "master": None, "store": None, "meta": None,
        "conf": {"spark.master": "yarn", "spark.executor.memory": "8g", "spark.a": "b=c"},
    }  # fmt: skip
    for wrong in ("spark.a", "a=b"):
        with pytest.raises(InvalidValue, match="is not a setting of Spark"):
            opened({**where, "conf": (wrong,)})


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
